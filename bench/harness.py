"""Shared code of the benchmarks: starts processes on loopback ports, reads CPU and memory from /proc, and
stops exactly the processes that it started."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
BODY = '{"originator":"Bench","recipient":"+{to}","text":"hello number {n}"}'
EMAIL = "bench@example.com"
CREDIT = 1_000_000
PRICE = 0.01
# The time limit of every wait, in seconds.
PATIENCE = 600


def say(text):
    print(text, file=sys.stderr, flush=True)


def options(description):
    """Returns a parser with the options that all benchmarks share."""
    # On SIGTERM, exit normally so that started processes are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--rounds", type=int, default=3, help="number of rounds; the medians are over all rounds")
    p.add_argument("--engine", choices=["sqlite", "postgres", "both"], default="sqlite")
    p.add_argument("--log", default="info", help="telemetry.log of heliograph")
    p.add_argument("--no-build", action="store_true", help="use existing binaries")
    p.add_argument("--binaries", metavar="DIR", help="use the binaries in this directory")
    p.add_argument("--dir", help="directory for temporary data, on a real disk [default: /var/tmp]")
    p.add_argument("--profile", metavar="FILE", help="write a perf profile of heliograph to this file")
    p.add_argument("--keep", action="store_true", help="keep data and logs")
    return p


def engines(args):
    return ["sqlite", "postgres"] if args.engine == "both" else [args.engine]


def build(args):
    """Builds the published profile and returns the directory of the binaries."""
    if args.binaries:
        return pathlib.Path(args.binaries).resolve()
    if not args.no_build:
        command = ["cargo", "build", "--profile=dist", "-p", "heliograph-server", "-p", "heliograph-bench"]
        subprocess.run(command, cwd=ROOT, check=True)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "dist"


# --- Metrics -------------------------------------------------------------------------------------


def process_cpu(pid, with_children=False):
    """Returns utime + stime in seconds of a process with all its threads; `with_children` adds children
    that it has waited for."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return sum(int(n) for n in fields[11 : 15 if with_children else 13]) / TICK


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found += [int(n) for n in (task / "children").read_text().split()]
    return found


def tree_cpu(pid):
    """Returns utime + stime in seconds of a forking server, including running and finished children."""
    total = process_cpu(pid, with_children=True)
    for child in children(pid):
        # A child that ends in the meantime is included in its parent's sum next time.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += process_cpu(child, with_children=True)
    return total


def machine_cpu():
    """Returns the busy seconds of all cores of the machine together."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, soft, *_ = (int(n) for n in f.readline().split()[1:])
    return (user + nice + system + irq + soft) / TICK


def memory(pid):
    """Returns resident memory in megabytes: current and peak."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return {
        "rss_mb": round(int(values["VmRSS"].split()[0]) / 1024, 1),
        "peak_mb": round(int(values["VmHWM"].split()[0]) / 1024, 1),
    }


def machine(args):
    """Describes the measured version and the machine."""
    directory = args.dir or "/var/tmp"
    info = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    disk = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True)
    return {
        "cores": os.cpu_count(),
        "cpu": models[0] if models else "?",
        "kernel": os.uname().release,
        "disk": disk.stdout.strip(),
        "load": os.getloadavg()[0],
        "measured": args.binaries
        or subprocess.run(git, capture_output=True, text=True).stdout.strip(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


# --- Processes -----------------------------------------------------------------------------------


def free_ports(n):
    """Returns free ports below the ephemeral range, where a socket could connect to itself."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        top = int(f.read().split()[0])
    found = []
    while len(found) < n:
        port = random.randrange(min(20_000, top - 2_000), top)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            if port not in found:
                found.append(port)
    return found


def http(url, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10) as answer:
        return answer.read().decode()


def wait_for(what, condition, patience=PATIENCE, every=0.02):
    """Waits until the condition returns a truthy value and returns it."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            found = condition()
            if found:
                return found
        time.sleep(every)
    raise TimeoutError(f"waited {patience} s for {what}")


class Harness:
    """The environment of one round: a temporary directory and the processes started in it."""

    def __init__(self, args, binaries):
        self.args = args
        self.kept = args.keep
        self.folder = pathlib.Path(
            tempfile.mkdtemp(prefix="heliograph-bench-", dir=args.dir or "/var/tmp")
        )
        # PostgreSQL may run as another user, who needs access.
        self.folder.chmod(0o711)
        self.processes = {}
        self.cluster = None
        for name in ["heliograph", "bench"]:
            # Copy the binaries, in case of a build in the meantime.
            shutil.copy2(binaries / name, self.folder / name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in list(self.processes):
            self.stop(name)
        if self.cluster:
            self.postgres_script("stop", str(self.folder / "cluster"))
        if self.kept:
            say(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, *command):
        """Starts a process with its output in NAME.log."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self.processes[name]

    def stop(self, name, how=signal.SIGTERM):
        """Stops a process, gracefully at first."""
        process = self.processes.pop(name, None)
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def alive(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                raise RuntimeError(f"{name} exited unexpectedly:\n{log[-2000:]}")
        return True

    def postgres_script(self, *arguments):
        script = ROOT / "scripts" / "postgres-cluster"
        run = subprocess.run([script, *arguments], stdout=subprocess.PIPE, text=True, check=True)
        return run.stdout.strip()

    # --- Tools

    def start_smsc(self, ports, *flags):
        """Starts `bench smsc` on two ports, for SMPP and for the control API."""
        smpp, self.control = ports
        where = ["--port", smpp, "--control", self.control]
        self.start("smsc", self.folder / "bench", "smsc", "--unique", *where, *flags)
        wait_for("the SMSC", lambda: self.alive() and self.smsc(), 20)

    def smsc(self):
        return json.loads(http(f"http://127.0.0.1:{self.control}/stats"))

    def start_sink(self, *flags):
        """Starts `bench sink`."""
        [port] = free_ports(1)
        self.sink_base = f"http://127.0.0.1:{port}"
        self.start("sink", self.folder / "bench", "sink", "--port", port, *flags)
        wait_for("the sink", lambda: self.alive() and http(f"{self.sink_base}/stats"), 20)

    def sink(self, path=None):
        """Returns the statistics of the sink, of all paths or of one."""
        seen = json.loads(http(f"{self.sink_base}/stats"))
        nothing = {"posts": 0, "unique": 0, "last_s": 0}
        return seen if path is None else seen.get(path, nothing)

    def start_echo(self):
        [port] = free_ports(1)
        self.start("echo", self.folder / "bench", "echo", "--port", port)
        listening = lambda: self.alive() and socket.create_connection(("127.0.0.1", port), 1)
        wait_for("the echo", listening, 20).close()
        return f"http://127.0.0.1:{port}/v1/send/sms"

    def load(self, url, *flags):
        """Runs `bench load` and returns its result with its own CPU seconds."""
        command = [self.folder / "bench", "load", "--url", url, "--body", BODY, *flags]
        if url.startswith(getattr(self, "base", "?")):
            command += ["--header", f"Authorization: Bearer {self.key}"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seen = json.loads(run.stdout)
        seen["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        others = {k: n for k, n in seen["status"].items() if k != "201"}
        if others or seen["failures"]:
            raise RuntimeError(f"not every response was 201: {seen}")
        return seen

    # --- Heliograph

    def product(self, *arguments):
        """Runs a heliograph command and returns its output."""
        command = [self.folder / "heliograph", "--config", self.folder / "heliograph.toml"]
        run = subprocess.run(
            [str(part) for part in [*command, *arguments]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if run.returncode:
            output = run.stdout + run.stderr
            raise RuntimeError(f"heliograph {' '.join(arguments)} failed:\n{output}")
        return run.stdout.strip()

    def configure(self, engine, smpp_port, window):
        """Creates a live account with a balance and configures the benchmark SMSC as the carrier."""
        if engine == "postgres":
            self.cluster = True
            url = self.database_url = self.postgres_script("start", str(self.folder / "cluster"), "--fsync")
            pid_file = self.folder / "cluster" / "data" / "postmaster.pid"
            self.postmaster = int(pid_file.read_text().split()[0])
            database = f'[database]\nurl = "{url}"\n'
        else:
            database = ""
        [port] = free_ports(1)
        self.base = f"http://127.0.0.1:{port}"
        (self.folder / "heliograph.toml").write_text(
            f'[server]\nlisten = "127.0.0.1:{port}"\ndata_dir = "{self.folder}/data"\n'
            f"{database}"
            '[[carriers]]\nname = "bench"\nkind = "smpp"\nhost = "127.0.0.1"\n'
            f'port = {smpp_port}\nsystem_id = "bench"\npassword = "bench"\nwindow = {window}\n'
            '[[routes]]\nprefix = ""\ncarriers = ["bench"]\n'
            f'[rates]\ndefault = "{PRICE:.4f}"\n[limits]\nrequests_per_second = 0\n'
            '[webhooks]\nallow_private = ["127.0.0.1/32"]\n'
            f'[telemetry]\nlog = "{self.args.log}"\n'
        )
        self.product("account", "create", "--email", EMAIL)
        self.product("credit", "--account", EMAIL, "--amount", str(CREDIT))
        self.key = self.product("key", "create", "--account", EMAIL, "--live")
        self.url = f"{self.base}/v1/send/sms"

    def serve(self, *flags):
        config = self.folder / "heliograph.toml"
        program = self.folder / "heliograph"
        self.start("heliograph", program, "--config", config, "serve", *flags)
        ready = lambda: self.alive() and http(f"{self.base}/readyz")
        wait_for("the service", ready, 30)

    def cpu(self, name="heliograph"):
        """Returns the CPU seconds of a process; for heliograph, including its database server."""
        seconds = process_cpu(self.processes[name].pid)
        if name == "heliograph" and self.cluster:
            seconds += tree_cpu(self.postmaster)
        return seconds

    @contextlib.contextmanager
    def profiled(self):
        """Records a perf profile of heliograph, if requested."""
        if self.args.profile:
            what = ["-p", self.processes["heliograph"].pid, "-o", self.args.profile]
            how = ["-F", 499, "-e", "cpu-clock", "--call-graph", "dwarf,16384"]
            self.start("perf", "perf", "record", *how, *what)
            time.sleep(0.5)
        yield
        self.stop("perf", signal.SIGINT)

    def memory(self):
        return memory(self.processes["heliograph"].pid)

    def metric(self, *names):
        """Returns the values of metrics; 0 for a metric that does not exist yet."""
        lines = [line.split() for line in http(f"{self.base}/metrics").splitlines()]
        values = {line[0]: float(line[1]) for line in lines if len(line) == 2}
        found = [values.get(f"heliograph_{name}", 0.0) for name in names]
        return found if len(found) > 1 else found[0]

    @contextlib.contextmanager
    def batches(self, figures):
        """Measures how many rows each transaction of the writer changed (group commit)."""
        counters = ["writer_batch_rows_sum", "writer_batch_rows_count"]
        before = self.metric(*counters)
        yield
        rows, batches = (now - start for now, start in zip(self.metric(*counters), before))
        figures["rows_per_commit"] = round(rows / max(batches, 1), 1)

    def prove(self, messages, stored=0):
        """Verifies that every message was charged once, that no money is reserved, and all database invariants.
        `stored` is the cost of the messages inserted before, in millionths."""
        [account] = [
            a
            for a in json.loads(self.product("--json", "account", "list"))
            if a["name"] == EMAIL
        ]
        balance = round(float(account["available"]) + float(account["reserved"]), 4)
        if float(account["reserved"]) or balance != round(CREDIT - messages * PRICE - stored / 1e6, 4):
            raise RuntimeError(f"wrong balance after {messages} messages at {PRICE}: {account}")
        self.product("check")


@contextlib.contextmanager
def other_cpu(figures, *ours):
    """Measures how many cores other programs kept busy. `ours` are functions that return our own CPU seconds."""
    used = lambda: sum(cpu() for cpu in ours)
    started, busy, own = time.monotonic(), machine_cpu(), used()
    yield
    took = time.monotonic() - started
    own = used() - own + figures.get("load_cpu", 0)
    figures["other_cpu"] = round(max(0.0, machine_cpu() - busy - own) / took, 2)


# --- Results -------------------------------------------------------------------------------------


def emit(figures):
    print(json.dumps(figures), flush=True)


def table(rows, key, columns):
    """Prints medians over rounds, one line for each combination of the `key` columns."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in key), []).append(row)
    lines = [[*key, *columns, "rounds"]]
    for name, group in groups.items():
        middle = [statistics.median(row[c] for row in group) for c in columns]
        lines.append([*map(str, name), *(f"{m:,.{digits(m)}f}" for m in middle), str(len(group))])
    widths = [max(map(len, column)) for column in zip(*lines)]
    print()
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
    sys.stdout.flush()


def digits(number):
    return 0 if abs(number) >= 1000 else 1 if abs(number) >= 20 else 2
