"""Servers of a benchmark, each started and stopped by its own process id, and what they cost."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def family(pid):
    """A process and all that descend from it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                pass
    found = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def cpu_seconds(pids):
    """By process: nginx has a cache loader that ends by itself."""
    spent = {}
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        spent[pid] = (int(fields[11]) + int(fields[12])) / TICKS
    return spent


def cpu_since(before, pids):
    now = cpu_seconds(pids)
    return sum(now[pid] - before[pid] for pid in now if pid in before)


def pss_kib(pids):
    pattern = re.compile(r"^Pss:\s+(\d+)", re.M)
    return sum(int(pattern.search(Path(f"/proc/{pid}/smaps_rollup").read_text()).group(1)) for pid in pids)


class Servers:
    """Starts servers on core 0 and stops them, by their own process ids."""

    def __init__(self, directory):
        self.dir = directory
        self.ports = {"ORIGIN": free_port()}
        self.running = []

    def files(self, sizes):
        """What nginx serves as the origin, by name."""
        www = self.dir / "www"
        www.mkdir()
        for name, size in sizes.items():
            (www / name).write_bytes(b"a" * size)

    def configuration(self, name):
        text = (HERE / name).read_text().replace("@DIR@", str(self.dir))
        for key, port in self.ports.items():
            text = text.replace(f"@{key}@", str(port))
        path = self.dir / name
        path.write_text(text)
        return str(path)

    def start(self, command, port, core=0):
        log = open(self.dir / f"{Path(command[0]).name}-{port}.out", "wb")
        process = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=log, stderr=log)
        self.running.append(process)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return process
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} does not serve:\n" + Path(log.name).read_text(errors="replace"))
                time.sleep(0.001)

    def stop(self, process):
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.running.remove(process)

    def stop_all(self):
        for process in list(self.running):
            self.stop(process)

    def origin(self):
        return self.start(["nginx", "-g", "daemon off;", "-c", self.configuration("origin.conf")], self.ports["ORIGIN"])

    def nginx(self, configuration="nginx.conf"):
        self.ports["NGINX"] = free_port()
        command = ["nginx", "-g", "daemon off;", "-c", self.configuration(configuration)]
        return self.start(command, self.ports["NGINX"])

    def larder(self, binary, configuration="larder.toml"):
        self.ports["LARDER"] = free_port()
        return self.start([binary, "run", "--config", self.configuration(configuration)], self.ports["LARDER"])

    def bare(self, binary, size):
        port = free_port()
        return self.start([binary, str(port), str(size)], port), port


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt-get install wrk nginx-light gcc util-linux")


def compile_c(directory, name):
    binary = str(directory / name)
    subprocess.run(["cc", "-O2", "-Wall", "-o", binary, str(HERE / f"{name}.c")], check=True)
    return binary


def larder_binary():
    """LARDER_BIN, or the release build of this tree."""
    binary = os.environ.get("LARDER_BIN")
    if not binary:
        subprocess.run(["cargo", "build", "--release", "--bin", "larder"], cwd=ROOT, check=True)
        binary = str(ROOT / "target/release/larder")
    return binary
