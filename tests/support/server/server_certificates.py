"""A certificate for loopback, made for one test run by the openssl command."""

import subprocess
from pathlib import Path

from support.patience import PATIENCE_S


def make_certificate(folder: Path) -> tuple[str, str]:
    """Certificate and key, PEM files in `folder`; the certificate is its own authority."""
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ],
        check=True, capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    return certificate, key
