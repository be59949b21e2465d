"""A federation on this machine: a SuperLink, SuperNodes and runs on them, all in one folder."""

import contextlib
import datetime
import ipaddress
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

APP = pathlib.Path(__file__).parent
PROGRAMS = pathlib.Path(sys.executable).parent


def free_port() -> int:
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def make_certificates(folder: pathlib.Path) -> pathlib.Path:
    """A certificate authority, and a certificate of 127.0.0.1 that it signed: ca.pem, server.pem, server.key."""
    folder.mkdir()
    now = datetime.datetime.now(datetime.UTC)
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def certificate(
        name: str, key: ec.EllipticCurvePrivateKey, extensions: Iterable[tuple[x509.ExtensionType, bool]]
    ) -> bytes:
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number())
        made = made.not_valid_before(now - datetime.timedelta(hours=1))
        made = made.not_valid_after(now + datetime.timedelta(days=1))
        for extension, critical in extensions:
            made = made.add_extension(extension, critical)
        return made.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])
    ca = [(x509.BasicConstraints(ca=True, path_length=0), True), (usage, True), (identifier, False)]
    (folder / "ca.pem").write_bytes(certificate("test authority", authority, ca))
    (folder / "server.pem").write_bytes(certificate("127.0.0.1", server, [(here, False), (signed_by, False)]))
    (folder / "server.key").write_bytes(pem(server))
    return folder


def make_node_key(path: pathlib.Path) -> pathlib.Path:
    """An SSH key pair as SuperNodes show it: `path` and `path`.pub."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public)
    return path


def descendants(pid: int) -> list[int]:
    """Processes that `pid` started, and those that these started, by Linux's /proc."""
    children: dict[int, list[int]] = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            child, parent = stat.read_text().split(" ", 1)[0], stat.read_text().rsplit(")", 1)[1].split()[1]
            children.setdefault(int(parent), []).append(int(child))
    found: list[int] = []
    next_ones = [pid]
    while next_ones:
        next_ones = [child for parent in next_ones for child in children.get(parent, [])]
        found += next_ones
    return found


def working_in(folder: pathlib.Path) -> list[int]:
    """Processes whose working directory it is."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder.resolve():
                found.append(int(process.name))
    return found


class Processes:
    """Programs of this environment, started in `folder`, where NAME.log has what each printed. Leaving the `with`
    block ends all of them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            self.kill(process)
        for pid in working_in(self.folder):  # what they left running
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start(self, name: str, *command: str, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """`more` goes into its environment."""
        with (self.folder / f"{name}.log").open("w") as out:
            process = subprocess.Popen(
                command,
                env=self.environment | dict(more or {}),
                cwd=self.folder,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kills a process and all that it started, some of which is in sessions of its own."""
        for pid in (process.pid, *descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for(self, name: str, pattern: str, count: int = 1, seconds: float = 120) -> None:
        """Waits until the log of `name` has `pattern` `count` times."""
        end = time.monotonic() + seconds
        while len(re.findall(pattern, self.log(name))) < count:
            assert time.monotonic() < end, f"{pattern!r} is not in {name}.log:\n{self.log(name)}"
            time.sleep(0.05)

    def wait_for_port(self, name: str, port: int, seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while not is_open(port):
            assert time.monotonic() < end, f"{name} does not listen:\n{self.log(name)}"
            time.sleep(0.1)


def is_open(port: int) -> bool:
    with contextlib.closing(socket.socket()) as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Loopback(Processes):
    """A SuperLink, and SuperNodes and runs as they are asked for."""

    def __init__(self, folder: pathlib.Path, tls: pathlib.Path | None = None, authenticate: bool = False) -> None:
        super().__init__(folder)
        self.tls, self.authenticate, self.port = tls, authenticate, free_port()
        self.address = f"127.0.0.1:{self.port}"
        home = folder / "home"
        home.mkdir(parents=True)
        safety = f'root-certificates = "{tls / "ca.pem"}"' if tls else "insecure = true"
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{self.address}"\n{safety}\n'
        )
        self.environment["FLWR_HOME"] = str(home)

    def __enter__(self) -> Self:
        safety = ["--insecure"]
        if self.tls:
            files = (("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "ca.pem"))
            safety = [f"--ssl-{kind}file={self.tls / name}" for kind, name in files]
        if self.authenticate:
            safety.append("--enable-supernode-auth")
        where = ["--host", "127.0.0.1", "--port", str(self.port)]
        self.start("superlink", "flower-superlink", *safety, *where, "--disable-runtime-dependency-installation")
        try:
            self.wait_for_port("superlink", self.port)
        except AssertionError:
            self.__exit__()  # a `with` whose beginning fails does not call it
            raise
        return self

    def add_node(
        self,
        number: int,
        config: str = "",
        key: pathlib.Path | None = None,
        register: bool = True,
        python_path: pathlib.Path | None = None,
    ) -> subprocess.Popen[bytes]:
        safety = ["--root-certificates", str(self.tls / "ca.pem")] if self.tls else ["--insecure"]
        if key and register:
            self.flwr("supernode", "register", f"{key}.pub", "here")
        if key:
            safety += ["--auth-supernode-private-key", str(key)]
        where = ["--superlink", self.address, "--port", str(free_port())]
        node = ["--node-config", f"partition-id={number} {config}".strip()]
        more = {"PYTHONPATH": str(python_path)} if python_path else {}
        return self.start(f"node{number}", "flower-supernode", *safety, *where, *node, more=more)

    def run(self, config: str) -> str:
        """Runs `flwr run` to its end, and returns what it printed."""
        return self.flwr("run", str(APP), "here", "--stream", "--run-config", config)

    def start_run(self, config: str) -> subprocess.Popen[bytes]:
        return self.start("run", "flwr", "run", str(APP), "here", "--stream", "--run-config", config)

    def flwr(self, *arguments: str) -> str:
        done = subprocess.run(
            [PROGRAMS / "flwr", *arguments],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout
