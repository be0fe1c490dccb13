#!/usr/bin/python3 -IS
"""Stands in for `leat task` in tests of the launcher: says over its link what a task says, and ends as told.

Called as `fake_task.py task CLUSTER --job J --task I --launcher-fd N`, or without arguments as a program that is its own
task (LEAT_LAUNCHER_FD, TF_CONFIG). What it does comes from FAKE_<job>_<index>:
  ready              the default: binds a port, gets the cluster, is ready, ends on SIGTERM with 0
  unable TEXT        reports the failure TEXT, writes it, ends with 3
  late               ready when the file FAKE_TRIGGER exists
  deaf               binds and never gets ready
  stubborn           is ready and ignores SIGTERM
  done N             is ready, says that it is done, ends with N when the launcher hangs up
  exit N             is ready, then ends with N when the file FAKE_TRIGGER exists
  child              is ready, and has a child of its own that ignores SIGTERM; its pid is printed
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

if len(sys.argv) > 1:
    arguments = dict(zip(sys.argv[3::2], sys.argv[4::2]))
    job, index, link_fd = arguments["--job"], int(arguments["--task"]), int(arguments["--launcher-fd"])
else:
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    job, index, link_fd = task["type"], task["index"], int(os.environ["LEAT_LAUNCHER_FD"])
what, _, rest = os.environ.get(f"FAKE_{job}_{index}", "ready").partition(" ")
link = socket.socket(fileno=link_fd)
signal.signal(signal.SIGTERM, signal.SIG_IGN if what == "stubborn" else lambda *_: os._exit(0))


def report(**line):
    link.sendall((json.dumps(line) + "\n").encode())


def wait_for_trigger():
    while not os.path.exists(os.environ["FAKE_TRIGGER"]):
        threading.Event().wait(0.01)


if what == "unable":
    report(state="failed", detail=rest)
    print(rest, file=sys.stderr, flush=True)
    sys.exit(3)
listener = socket.create_server(("127.0.0.1", 0))
report(state="bound", address=f"127.0.0.1:{listener.getsockname()[1]}")
from_launcher = link.makefile()
cluster = from_launcher.readline()
if not cluster:
    sys.exit("the launcher has gone")
print(f"{job}:{index} pid {os.getpid()}", flush=True)
if what == "deaf":
    report(state="waiting",
           missing=[{"task": "/job:ps/task:0", "address": "", "reason": "connection refused", "refused": True}])
    threading.Event().wait()
if what == "child":
    child = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 600; done"])
    print(f"child pid {child.pid}", flush=True)
if what == "late":
    wait_for_trigger()
report(state="ready", detail="2 cores")
if what == "done":
    report(state="done")
    print("done", flush=True)
    from_launcher.read()
    print("what had gone wrong before", flush=True)
    os._exit(int(rest))
if what == "exit":
    wait_for_trigger()
    print("the end of the world", flush=True)
    os._exit(int(rest))
threading.Event().wait()
