#!/usr/bin/env python3
"""Programs of other people, plain and by godwit-pthread: foreign.py [--launcher PROGRAM] [--runs N] [NAME...]

Each is run once plain and N times by godwit-pthread; what it says at the end must be equal. Names: python.MODULE for four modules of
Python's own tests, redis (two I/O threads), redis.4 (four), memcached, mariadb, java; all that are installed by default (Debian: libpython3-testsuite, redis-server,
redis-tools, memcached, mariadb-server, mariadb-client, default-jdk-headless). Servers listen on loopback only, and each
run has a limit of time. Not part of the default tests: it takes minutes. Status: 0 all equal, 1 not. docs/pthread.md, "What was tried".
"""

import argparse
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

MODULES = ["test_threading", "test_signal", "test_subprocess", "test_concurrent_futures"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(command, seconds, **how):
    """Status and output; status 124 when it had to be stopped."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              text=True, errors="replace", **how)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(errors="replace")


class Server:
    """A server that has begun to listen; stopped, in the end by force, when left."""

    def __init__(self, command, port, folder, seconds=60):
        self.command, self.port, self.folder, self.seconds = command, port, folder, seconds

    def __enter__(self):
        with open(self.folder / "server.txt", "w") as output:
            self.process = subprocess.Popen(self.command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                time.sleep(0.1)
        self.__exit__()
        raise RuntimeError("the server does not listen: " + (self.folder / "server.txt").read_text()[-500:])

    def __exit__(self, *_):
        self.status = self.process.poll()
        if self.status is None:
            self.process.terminate()
            try:
                self.status = self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                self.status = "killed: it did not end by SIGTERM"


def python_module(module):
    def test(prefix, folder):
        status, text = run(prefix + ["/usr/bin/python3", "-m", "test", "-v", module], 900, cwd=folder)
        failed = sorted(set(re.findall(r"^(?:FAIL|ERROR): (\S+)", text, re.M)))
        return f"status {status}; {' '.join(failed) or 'nothing failed'}"
    return test


def redis(io_threads):
    def test(prefix, folder):
        port = free_port()
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--io-threads", str(io_threads),
                   "--io-threads-do-reads", "yes"]
        with Server(prefix + command, port, folder) as server:
            status, text = run(["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-n", "3000", "-c", "10", "-q", "-t",
                                "set,get,lpush"], 120)
            tests = re.findall(r"^(\S[^:\r\n]*): [\d.]+ requests", text.replace("\r", "\n"), re.M)
            value = run(["redis-cli", "-h", "127.0.0.1", "-p", str(port), "dbsize"], 10)[1].strip()
        return f"client {status}: {', '.join(sorted(set(tests)))}; {value} keys; server {server.status}"
    return test


def memcached(prefix, folder):
    port = free_port()
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with Server(prefix + ["memcached", *user, "-l", "127.0.0.1", "-p", str(port), "-t", "4"], port, folder) as server:
        owner = os.stat(f"/proc/{server.process.pid}/task").st_uid
        got = 0
        clients = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(16)]
        for i in range(200):
            for n, c in enumerate(clients):
                value = f"{n}-{i}".encode()
                c.sendall(b"set k%d 0 0 %d\r\n%s\r\nget k%d\r\n" % (n, len(value), value, n))
            for n, c in enumerate(clients):
                expected = f"STORED\r\nVALUE k{n} 0 {len(f'{n}-{i}')}\r\n{n}-{i}\r\nEND\r\n".encode()
                text = b""
                while len(text) < len(expected):
                    text += c.recv(len(expected) - len(text))
                got += text == expected
        for c in clients:
            c.close()
    return f"{got} right answers, user {owner}, server {server.status}"


def mariadb(prefix, folder):
    port = free_port()
    user = []
    if os.geteuid() == 0:
        user = ["--user=nobody"]
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    data = folder / "data"
    made = run(["mariadb-install-db", "--no-defaults", *user, f"--datadir={data}", "--auth-root-authentication-method=normal",
                "--skip-test-db"], 120)
    if made[0] != 0:
        return "cannot make a database: " + made[1][-300:]
    command = ["mariadbd", "--no-defaults", *user, f"--datadir={data}", f"--socket={folder}/s", f"--port={port}",
               "--bind-address=127.0.0.1", f"--pid-file={folder}/pid", "--skip-grant-tables", "--skip-name-resolve"]
    with Server(prefix + command, port, folder, 120) as server:
        slap = run(["mysqlslap", "--no-defaults", "-h127.0.0.1", f"-P{port}", "--protocol=tcp", "-uroot", "--concurrency=16", "--iterations=2",
                    "--number-of-queries=1600", "--auto-generate-sql", "--auto-generate-sql-load-type=mixed"], 180)
        rows = run(["mysql", "--no-defaults", "-h127.0.0.1", f"-P{port}", "--protocol=tcp", "-uroot", "-N", "-e",
                    "select 6 * 7"], 30)
    return f"mysqlslap {slap[0]}, query {rows[1].strip()}, server {server.status}"


JAVA = """
import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class T {
  static int descend(int n) { return descend(n + 1) + 1; }
  public static void main(String[] a) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    List<Future<Long>> all = new ArrayList<>();
    for (int i = 0; i < 64; i++) {
      final int k = i;
      all.add(pool.submit(() -> { long x = 0; for (int j = 0; j < 200000; j++) x += (long) j * k; synchronized (T.class) { return x; } }));
    }
    long sum = 0;
    for (Future<Long> f : all) sum += f.get();
    pool.shutdown();
    System.out.println(sum + " " + IntStream.range(0, 100000).parallel().mapToLong(i -> i).sum());
    Thread t = new Thread(() -> { try { Thread.sleep(100000); } catch (InterruptedException x) { System.out.println("interrupted"); } });
    t.start(); Thread.sleep(50); t.interrupt(); t.join(); System.gc();
    try { int[] q = null; q[0] = 1; } catch (NullPointerException x) { System.out.println("null"); }
    try { descend(0); } catch (StackOverflowError x) { System.out.println("stack"); }
  }
}
"""


def java(prefix, folder):
    (folder / "T.java").write_text(JAVA)
    made = run(["javac", "T.java"], 120, cwd=folder)
    if made[0] != 0:
        return "cannot compile: " + made[1]
    status, text = run(prefix + ["java", "-cp", ".", "T"], 120, cwd=folder)
    lines = [line for line in text.splitlines() if not line.startswith("godwit-pthread: ")]
    return f"status {status}: {' | '.join(lines)}"


PROGRAMS = {f"python.{m}": ("/usr/bin/python3", python_module(m)) for m in MODULES}
PROGRAMS |= {"redis": ("redis-server", redis(2)), "redis.4": ("redis-server", redis(4)), "memcached": ("memcached", memcached),
             "mariadb": ("mariadbd", mariadb), "java": ("javac", java)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--launcher", default=shutil.which("godwit-pthread"))
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background with SIGINT ignored
    if args.launcher is None:
        parser.error("godwit-pthread is not on PATH: give --launcher")
    for name in args.names:
        if name not in PROGRAMS:
            parser.error(f"{name}: one of {', '.join(PROGRAMS)}")
    different = 0
    for name, (program, test) in PROGRAMS.items():
        if args.names and name not in args.names:
            continue
        if shutil.which(program) is None:
            print(f"{name}: skipped, {program} is not installed")
            continue

        def once(prefix):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="foreign"))
            folder.chmod(0o755)
            try:
                return test(prefix, folder)
            except (OSError, RuntimeError, subprocess.SubprocessError) as e:
                return f"{type(e).__name__}: {e}"
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        plain = once([])
        print(f"{name}: plain: {plain}", flush=True)
        equal = 0
        for _ in range(args.runs):
            ours = once([str(pathlib.Path(args.launcher).resolve())])
            equal += ours == plain
            if ours != plain:
                print(f"{name}: not equal: {ours}", flush=True)
        print(f"{name}: {equal} of {args.runs} runs equal", flush=True)
        different += equal != args.runs
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
