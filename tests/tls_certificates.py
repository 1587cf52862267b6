"""Certificates for tests of TLS, made with openssl: a CA of one's own, and what it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_ca(folder: Path, name: str) -> None:
    """Make a CA of that name: NAME.pem and NAME.key."""
    subject = ["-subj", f"/CN={name}", "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
    usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]  # Python 3.13 and newer insist on it
    _openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *usage)


def make_certificate(folder: Path, ca: str, name: str, alternatives: str) -> None:
    """Make NAME.pem and NAME.key, signed by a CA."""
    (folder / f"{name}.ext").write_text(f"subjectAltName={alternatives}\nauthorityKeyIdentifier=keyid\n")
    _openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    signed_by = ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-extfile", f"{name}.ext"]
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed_by, "-days", "2", "-out", f"{name}.pem")


def make_usual_certificates(folder: Path) -> None:
    """Make in a folder: of `ca` the server's and a client's, and another CA `stranger`."""
    make_ca(folder, "ca")
    make_ca(folder, "stranger")
    make_certificate(folder, "ca", "server", "IP:127.0.0.1")
    make_certificate(folder, "ca", "client", "DNS:crawler-1")
