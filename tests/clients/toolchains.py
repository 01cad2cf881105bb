"""What each client program needs from its language, how it is installed, and how it is started.

Everything fetched or built stays in build/clients, so a second run installs nothing.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "clients"
INSTALL_SECONDS = 420


class ToolchainError(Exception):
    """A toolchain is missing or could not install; the text says which."""


def _run(command, folder=None, **variables):
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True,
                          env=dict(os.environ, **variables), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=INSTALL_SECONDS)
    if done.returncode != 0:
        raise ToolchainError(f"{' '.join(map(str, command))}:\n{done.stdout}")


def _python():
    requirements = HERE / "python" / "requirements.txt"
    folder = BUILD / "python"
    installed = folder / requirements.name
    if not installed.exists() or installed.read_text() != requirements.read_text():
        _run([sys.executable, "-m", "venv", "--clear", folder])
        _run([folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check",
              "--only-binary=:all:", "--no-deps", "-r", requirements])
        shutil.copy(requirements, installed)
    return {name: [folder / "bin" / "python", HERE / "python" / f"{name}_client.py"]
            for name in ("psycopg", "asyncpg", "sqlalchemy")}


def _jdbc():
    folder = BUILD / "jdbc"
    pom = HERE / "jdbc" / "pom.xml"
    installed = folder / pom.name
    if not installed.exists() or installed.read_text() != pom.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        _run(["mvn", "--quiet", "--batch-mode", "--file", pom, "dependency:copy-dependencies",
              f"-DoutputDirectory={folder / 'jars'}"])
        shutil.copy(pom, installed)
    _run(["javac", "-Xlint:all", "-Werror", "-cp", folder / "jars" / "*", "-d",
          folder / "classes", *sorted((HERE / "jdbc").glob("*.java"))])
    return {"jdbc": ["java", "-cp", f"{folder / 'classes'}:{folder / 'jars' / '*'}",
                     "JdbcClient"]}


def _node():
    # node looks for packages beside the program, so that is copied to where they are.
    folder = BUILD / "node"
    folder.mkdir(parents=True, exist_ok=True)
    lock = HERE / "node" / "package-lock.json"
    installed = folder / "installed.json"
    for file in (HERE / "node").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    if not installed.exists() or installed.read_text() != lock.read_text():
        _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
        shutil.copy(lock, installed)
    return {"node": ["node", folder / "client.mjs"]}


def _pgx():
    program = BUILD / "pgx" / "client"
    _run(["go", "build", "-o", program, "."], HERE / "pgx", GOFLAGS="-mod=readonly",
         CGO_ENABLED="0")
    return {"pgx": [program]}


def _tokio():
    folder = BUILD / "tokio"
    _run(["cargo", "build", "--quiet", "--locked", "--target-dir", folder], HERE / "tokio")
    return {"tokio": [folder / "debug" / "tokio-client"]}


_CLIENTS = {
    "python": ([], _python),
    "jdbc": (["java", "javac", "mvn"], _jdbc),
    "node": (["node", "npm"], _node),
    "pgx": (["go"], _pgx),
    "tokio": (["cargo", "pkg-config"], _tokio),
}
NAMES = tuple(_CLIENTS)


def require(names):
    """Raises ToolchainError naming every tool that the clients need and this machine lacks."""
    missing = [f"{tool} (for {name})" for name in names for tool in _CLIENTS[name][0]
               if shutil.which(tool) is None]
    if missing:
        raise ToolchainError(f"not on this machine: {', '.join(missing)}; install it, or name the "
                             f'clients to run: make test-clients CLIENTS="python"')


def install(name):
    """Installs and builds one client. Returns the command of each of its programs by name."""
    BUILD.mkdir(parents=True, exist_ok=True)
    return _CLIENTS[name][1]()
