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

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

APP = pathlib.Path(__file__).parent
PROGRAMS = pathlib.Path(sys.executable).parent


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def make_certificates(folder):
    """A certificate authority, and a certificate of 127.0.0.1 that it signed: ca.pem, server.pem, server.key."""
    folder.mkdir()
    now = datetime.datetime.now(datetime.UTC)
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def certificate(name, key, extensions):
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


def make_node_key(path):
    """An SSH key pair as SuperNodes show it: `path` and `path`.pub."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public)
    return path


def descendants(pid):
    """What a process started, and what that started, by Linux's list of processes."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            child, parent = stat.read_text().split(" ", 1)[0], stat.read_text().rsplit(")", 1)[1].split()[1]
            children.setdefault(int(parent), []).append(int(child))
    found, next_ones = [], [pid]
    while next_ones:
        next_ones = [child for parent in next_ones for child in children.get(parent, [])]
        found += next_ones
    return found


class Loopback:
    """Starts what it is asked for; leaving the `with` block ends all of it."""

    def __init__(self, folder, tls=None, authenticate=False):
        self.folder, self.tls, self.authenticate = folder, tls, authenticate
        self.address = f"127.0.0.1:{free_port()}"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        safety = f'root-certificates = "{tls / "ca.pem"}"' if tls else "insecure = true"
        self.home.joinpath("config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{self.address}"\n{safety}\n'
        )
        self.environment = os.environ | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }
        self.processes = []

    def __enter__(self):
        host, port = self.address.split(":")
        safety = ["--insecure"]
        if self.tls:
            safety = [
                f"--ssl-{kind}file={self.tls / name}"
                for kind, name in (("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "ca.pem"))
            ]
        if self.authenticate:
            safety.append("--enable-supernode-auth")
        self._start(
            "superlink",
            "flower-superlink",
            *safety,
            "--host",
            host,
            "--port",
            port,
            "--disable-runtime-dependency-installation",
        )
        self._wait_for(int(port))
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            self.kill(process)

    def add_node(self, number, config="", key=None, register=True, python_path=None):
        safety = ["--root-certificates", str(self.tls / "ca.pem")] if self.tls else ["--insecure"]
        if key and register:
            self.call("supernode", "register", f"{key}.pub", "here")
        if key:
            safety += ["--auth-supernode-private-key", str(key)]
        return self._start(
            f"node{number}",
            "flower-supernode",
            *safety,
            "--superlink",
            self.address,
            "--port",
            str(free_port()),
            "--node-config",
            f"partition-id={number} {config}".strip(),
            python_path=python_path,
        )

    def run(self, config):
        """`flwr run`, to its end; what it printed."""
        return self.call("run", str(APP), "here", "--stream", "--run-config", config)

    def start_run(self, config):
        return self._start("run", "flwr", "run", str(APP), "here", "--stream", "--run-config", config)

    def call(self, *arguments):
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

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for(self, name, pattern, count=1, seconds=120):
        """Until the log of `name` has `pattern` that often."""
        end = time.monotonic() + seconds
        while len(re.findall(pattern, self.log(name))) < count:
            assert time.monotonic() < end, f"{pattern!r} is not in {name}.log:\n{self.log(name)}"
            time.sleep(0.05)

    def kill(self, process):
        """With all that it started, some of which is in sessions of its own."""
        for pid in (process.pid, *descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def _start(self, name, program, *arguments, python_path=None):
        environment = dict(self.environment)
        if python_path:
            environment["PYTHONPATH"] = f"{python_path}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        with (self.folder / f"{name}.log").open("w") as out:
            process = subprocess.Popen(
                [PROGRAMS / program, *arguments],
                env=environment,
                cwd=self.folder,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def _wait_for(self, port):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.closing(socket.socket()) as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"the SuperLink does not listen:\n{self.log('superlink')}")
