"""A private PostgreSQL with the shop, and `tidemark up` beside it, listening with TLS.

A Plane is a context manager: it stops and removes everything it made. Every wait has a deadline.
"""

import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DATABASE = "shop"
UP_SECONDS = 120
COMMAND_SECONDS = 60
HOST = "127.0.0.1"


class PlaneError(Exception):
    """Something that the clients need did not start; the text says what."""


def server_folder():
    """The folder of PostgreSQL's server programs: TIDEMARK_PG_BINDIR, or Debian's newest."""
    if chosen := os.environ.get("TIDEMARK_PG_BINDIR"):
        return pathlib.Path(chosen)
    versions = pathlib.Path("/usr/lib/postgresql").glob("*/bin")
    found = sorted(versions, key=lambda folder: int(folder.parent.name))
    if not found:
        raise PlaneError("no PostgreSQL server in /usr/lib/postgresql; tools/setup installs one")
    return found[-1]


def output_of(command, **options):
    """What the command prints. Raises PlaneError with its own words when it fails."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS, **options)
    if done.returncode != 0:
        raise PlaneError(f"{command[0]} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class Plane:
    def __init__(self, binary):
        self.binary = binary
        self.bindir = server_folder()
        # Not /tmp: where that is kept in memory, the store would rightly be refused.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-clients-", dir="/var/tmp"))
        self.source = self.folder / "source"
        self.data = self.folder / "data"
        self.authority = self.folder / "ca.crt"
        self.log = self.folder / "up.log"
        self.port = free_port()
        self.up = None

    def __enter__(self):
        try:
            self._start_source()
            self._make_certificates()
            self._start_tidemark()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.up is not None:
            self.up.send_signal(signal.SIGTERM)
            try:
                self.up.wait(COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                self.up.kill()
        if (self.source / "data" / "postmaster.pid").exists():
            self._as_server("pg_ctl", "-D", self.source / "data", "-m", "fast", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, text):
        """What the source answers, unaligned."""
        return self._psql(f"host={self.source} dbname={DATABASE} user=postgres", text)

    def ask(self, text):
        """What Tidemark answers the reader, unaligned."""
        environment = dict(os.environ, PGPASSFILE=str(self.data / "pgpass"),
                           PGSSLMODE="verify-full", PGSSLROOTCERT=str(self.authority))
        return self._psql(f"host={HOST} port={self.port} dbname={DATABASE} user=reader", text,
                          env=environment)

    def await_everything(self):
        """Returns once Tidemark has published all that the source has committed."""
        lsn = self.sql("SELECT pg_current_wal_insert_lsn()")
        # A commit's own record ends at or before this; an idle source's keep-alive passes it.
        output_of([self.binary, "wait", "--data", self.data, "--lsn", lsn, "--timeout", "60s"])

    def environment(self):
        """What a client program gets: libpq's own variables."""
        password = (self.data / "pgpass").read_text().splitlines()[0].split(":")[4]
        return {"PGHOST": HOST, "PGPORT": str(self.port), "PGDATABASE": DATABASE,
                "PGUSER": "reader", "PGPASSWORD": password, "PGSSLMODE": "verify-full",
                "PGSSLROOTCERT": str(self.authority)}

    def end_of_log(self):
        return "".join(self.log.open().readlines()[-20:]) if self.log.exists() else ""

    def _psql(self, conninfo, text, **options):
        return output_of(["psql", "-qXAt", "-v", "ON_ERROR_STOP=1", conninfo, "-c", text],
                         **options)

    def _as_server(self, program, *words):
        # PostgreSQL refuses to run as root.
        prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        output_of([*prefix, self.bindir / program, *words])

    def _start_source(self):
        self.folder.chmod(0o711)
        self.source.mkdir()
        if os.getuid() == 0:
            os.chown(self.source, pwd.getpwnam("postgres").pw_uid, -1)
        self._as_server("initdb", "-D", self.source / "data", "-A", "trust", "-U", "postgres",
                        "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions")
        with (self.source / "data" / "postgresql.conf").open("a") as configuration:
            configuration.write(f"listen_addresses = ''\nwal_level = logical\n"
                                f"unix_socket_directories = '{self.source}'\n")
        self._as_server("pg_ctl", "-D", self.source / "data", "-l", self.source / "log", "-w",
                        "start")
        self._psql(f"host={self.source} dbname=postgres user=postgres",
                   f"CREATE DATABASE {DATABASE}")
        self.sql((HERE / "shop.sql").read_text())

    def _make_certificates(self):
        """An authority of our own and the gateway's certificate, for the host that clients name."""
        def openssl(*words):
            output_of(["openssl", *words], cwd=self.folder)

        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj",
                "/CN=Tidemark client tests", "-addext", "keyUsage=critical,keyCertSign")
        openssl("req", "-x509", *key, "-keyout", "gateway.key", "-out", "gateway.crt", "-subj",
                "/CN=gateway", "-CA", "ca.crt", "-CAkey", "ca.key", "-addext",
                f"subjectAltName=IP:{HOST},DNS:localhost", "-addext",
                "basicConstraints=critical,CA:FALSE")

    def _start_tidemark(self):
        configuration = self.folder / "tidemark.yaml"
        configuration.write_text(f"""\
sources:
  shop: {{postgres: "host={self.source} dbname={DATABASE} user=postgres"}}
mirrors:
  shop: {{source: shop, publication: tidemark}}
gateway:
  listen: "{HOST}:{self.port}"
  tls: {{certificate_file: "{self.folder}/gateway.crt", key_file: "{self.folder}/gateway.key"}}
http: {{off: true}}
""")
        self.up = subprocess.Popen(
            [self.binary, "up", "--config", configuration, "--data", self.data],
            stdout=self.log.open("w"), stderr=subprocess.STDOUT)
        deadline = time.monotonic() + UP_SECONDS
        while "PGPASSFILE=" not in self.log.read_text():
            if self.up.poll() is not None:
                raise PlaneError(f"tidemark up ended with {self.up.returncode}:\n"
                                 + self.end_of_log())
            if time.monotonic() > deadline:
                raise PlaneError(f"tidemark up was not ready after {UP_SECONDS} s:\n"
                                 + self.end_of_log())
            time.sleep(0.1)
