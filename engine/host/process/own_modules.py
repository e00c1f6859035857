"""Import operators' own Python modules, named by settings: a market maker's prices, an agent's strategies.

A module in the settings' folder that an installed module hides is refused, so that prices never come from a
module of the same name.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from ....config.errors import ConfigError


def import_module(module_name: str, folder: Path, field: str) -> ModuleType:
    """Import an operator's own module (prices, strategies) from the settings' folder, or an installed module.

    Args:
        module_name: dotted name of the module.
        folder: folder of the settings file.
        field: the setting that names the module, for errors.

    Raises:
        ConfigError: the module does not exist, cannot be imported, or is hidden by an installed module of
            the same name.
    """
    beside = [folder.joinpath(*module_name.split(".")).with_suffix(".py"),
              folder.joinpath(*module_name.split("."), "__init__.py")]  # fmt: skip
    is_beside = any(path.is_file() for path in beside)
    # Appended, not put first: a file beside the settings must not replace a module that the package imports.
    if is_beside and str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # The error may come from an import within the module: the missing name is then another module's.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(
                field, f"module {module_name} needs {error.name}, which is not installed"
            ) from error
        raise ConfigError(field, f"unknown module {module_name}, neither in {folder} nor installed") from None
    except Exception as error:
        raise ConfigError(field, f"module {module_name} cannot be imported: {error!r}") from error
    # An installed module, or one that is imported already, is found before that of the folder.
    origin = Path(module.__file__ or "")
    if is_beside and origin.resolve() not in [path.resolve() for path in beside]:
        raise ConfigError(field, f"module {module_name} of {folder} is hidden by {origin}: rename it")
    return module
