"""A certificate authority in a folder: certificates that are good, expired, not yet valid, or for another host."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from shutil import which

import pytest

LONG_AGO = ("20200101000000Z", "20200102000000Z")
FAR_AHEAD = ("20900101000000Z", "20900102000000Z")
# `openssl ca` is the one command that takes both dates in all versions since 1.1.
CONFIGURATION = """
[ca]
default_ca = here
[here]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
default_days = 2
policy = any
unique_subject = no
[any]
commonName = supplied
"""
KEY_KIND = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """An authority of its own; `file` is what a client trusts it by."""

    def __init__(self, folder: Path, name: str = "Test authority") -> None:
        if which("openssl") is None:
            pytest.skip("openssl is not installed")
        folder.mkdir(parents=True)
        self.folder = folder
        self.file = folder / "authority.pem"
        (folder / "ca.cnf").write_text(CONFIGURATION, encoding="utf-8")
        (folder / "index.txt").touch()
        (folder / "serial").write_text("01\n", encoding="ascii")
        self._openssl(
            "req", "-x509", *KEY_KIND, "-days", "2", "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign",
            "-keyout", "authority.key", "-out", self.file.name,
        )  # fmt: skip

    def server(self, subject: str = "IP:127.0.0.1", dates: tuple[str, str] | None = None) -> ssl.SSLContext:
        """Return the context of a server with a certificate of this authority."""
        between = () if dates is None else ("-startdate", dates[0], "-enddate", dates[1])
        extensions = f"basicConstraints=CA:FALSE\nauthorityKeyIdentifier=keyid\nsubjectAltName={subject}\n"
        (self.folder / "extensions.cnf").write_text(extensions, encoding="ascii")
        self._openssl("req", *KEY_KIND, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
        self._openssl(
            "ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", self.file.name, "-keyfile", "authority.key",
            "-extfile", "extensions.cnf", *between, "-in", "server.csr", "-out", "server.pem",
        )  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server.key")
        return context

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(("openssl", *arguments), cwd=self.folder, check=True, capture_output=True, timeout=60)
