"""Texts of an exception and of every exception chained to it."""


def everything_told(error: BaseException) -> str:
    """Text, repr and attributes of an exception, of its causes and its contexts, suppressed or not."""
    told: list[str] = []
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is not None:
            told += [str(link), repr(link), repr(link.args), repr(vars(link))]
            todo += [link.__cause__, link.__context__]
    return "\n".join(told)
