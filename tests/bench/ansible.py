#!/usr/bin/env python3
"""Creates the same 200 VMs with proxops and with Ansible's community.proxmox, against one simulator each, and prints
both times. Not part of CI: it downloads the PyPI packages ansible-core, ansible (which bundles community.proxmox),
proxmoxer and requests into a virtual environment.

    tests/bench/ansible.py PATH-TO-PROXOPS [--venv DIR] [--guests N] [--forks N]

Ansible runs one playbook with a loop over the VMs, fact gathering off, as such playbooks are written; the module
waits for the task of each. With --forks N the VMs are spread over N inventory hosts, which work at once.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

NODES = ["pve01", "pve02", "pve03"]


def manifest(n):
    vmid = 1000 + n
    return {
        "apiVersion": "proxops/v1alpha1",
        "kind": "VM",
        "metadata": {"name": f"vm-{vmid}"},
        "spec": {
            "node": NODES[n % 3], "vmid": vmid, "state": "stopped", "memory": "2GiB",
            "cpu": {"type": "host", "cores": 2},
            "disks": [{"interface": "scsi0", "controller": "virtio-scsi-single", "storage": "local-lvm",
                       "size": "16GiB", "discard": "on"}],
            "networks": [{"slot": "net0", "bridge": "vmbr0", "vlan": 10 + n % 10}],
        },
    }


def item(n):
    vmid = 1000 + n
    return {
        "name": f"vm-{vmid}", "vmid": vmid, "node": NODES[n % 3], "memory": 2048, "cores": 2, "cpu": "host",
        "scsihw": "virtio-scsi-single", "scsi": {"scsi0": "local-lvm:16,discard=on"},
        "net": {"net0": f"virtio,bridge=vmbr0,tag={10 + n % 10}"}, "tags": ["proxops"],
    }


class Simulator:
    """`proxops sim` over TLS, with tasks of 500 ms."""

    def __init__(self, proxops, folder):
        faults = folder / "faults.json"
        faults.write_text(json.dumps({"tasks": [{"type": "*", "seconds": 0.5}]}))
        self.ca = folder / "ca.pem"
        words = [proxops, "sim", "--port", "0", "--ca-file", self.ca, "--faults", faults]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"https://\S+", self.process.stdout.readline()).group()
        for line in self.process.stdout:
            if found := re.search(r"PROXOPS_PVE_TOKEN_VALUE='(.*)'", line):
                self.token = found.group(1)
                break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def with_proxops(proxops, guests, folder):
    repo = folder / "repo"
    for path in ["clusters/lab", "vm/lab"]:
        (repo / path).mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet"], cwd=repo, check=True)
    (repo / "vm/lab/all.yaml").write_text("".join(f"---\n{json.dumps(manifest(n))}\n" for n in range(guests)))
    (repo / "clusters/lab/resources.yaml").write_text("resources: [../../vm/lab/all.yaml]\n")
    with Simulator(proxops, folder) as sim:
        (repo / "clusters/lab/config.yaml").write_text(
            f"pve:\n  clusters:\n    lab:\n      base-url: {sim.url}\n      ca-file: {sim.ca}\n"
            "      reconcile: {concurrency: {cluster: 16, node: 6}}\n"
        )
        env = dict(os.environ, PROXOPS_PVE_TOKEN_VALUE=sim.token)
        words = [proxops, "--data-dir", folder / "data"]
        subprocess.run([*words, "validate"], cwd=repo, env=env, check=True, capture_output=True)
        started = time.monotonic()
        subprocess.run([*words, "apply", "--yes"], cwd=repo, env=env, check=True, capture_output=True)
        return time.monotonic() - started


def with_ansible(proxops, venv, guests, forks, folder):
    with Simulator(proxops, folder) as sim:
        host, port = re.match(r"https://(.*):(\d+)", sim.url).groups()
        user, rest = sim.token.split("!")
        token_id, secret = rest.split("=")
        module = {
            "api_host": host, "api_port": int(port), "api_user": user, "api_token_id": token_id,
            "api_token_secret": secret, "validate_certs": False, "timeout": 120,
        }
        module |= {key: "{{ item.%s }}" % key for key in item(0)}
        play = [{
            "hosts": "all", "gather_facts": False, "connection": "local",
            "tasks": [{"community.proxmox.proxmox_kvm": module, "loop": "{{ guests }}"}],
        }]
        hosts = {
            f"worker{w}": {"guests": [item(n) for n in range(w, guests, forks)],
                           "ansible_python_interpreter": str(venv / "bin/python")}
            for w in range(forks)
        }
        (folder / "play.json").write_text(json.dumps(play))
        (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
        # inventories in JSON go by the name of the YAML plugin
        (folder / "hosts.json").rename(folder / "hosts.yaml")
        words = [venv / "bin/ansible-playbook", "-i", folder / "hosts.yaml", "-f", str(forks), folder / "play.json"]
        env = dict(os.environ, ANSIBLE_LOCALHOST_WARNING="0", LC_ALL="C.UTF-8", PYTHONWARNINGS="ignore")
        started = time.monotonic()
        done = subprocess.run(words, env=env, capture_output=True, text=True)
        took = time.monotonic() - started
        if done.returncode != 0:
            sys.exit(f"ansible-playbook ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")
        return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxops", type=pathlib.Path)
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "proxops-ansible")
    parser.add_argument("--guests", type=int, default=200)
    parser.add_argument("--forks", type=int, default=1)
    args = parser.parse_args()
    proxops, venv = args.proxops.resolve(), args.venv.resolve()
    if not (venv / "bin/ansible-playbook").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        packages = ["ansible-core", "ansible", "proxmoxer", "requests"]
        subprocess.run([venv / "bin/pip", "install", "--quiet", *packages], check=True)
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        fast = with_proxops(proxops, args.guests, pathlib.Path(ours))
        print(f"proxops apply of {args.guests} VMs: {fast:.1f} s", flush=True)
        slow = with_ansible(proxops, venv, args.guests, args.forks, pathlib.Path(theirs))
        print(f"ansible-playbook of the same, {args.forks} forks: {slow:.1f} s")
        print(f"{slow / fast:.1f} times as long (at least 20 are wanted)")


if __name__ == "__main__":
    main()
