"""How fast the workbench's server hands out a tile: a GPT-2-small shape (12 × 12) with random weights, T=512.

Promises: one layer's patterns of a trace in memory, computed anew, p95 ≤ 100 ms for one client; 32 and 128 clients at
once, no error. The server runs in a process of its own and is asked over real connections; with 128 clients the
processor is busy with them as much as with the server.

python benchmarks/server.py            # one minute
python benchmarks/server.py --quick    # fewer requests
"""

import argparse
import http.client
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RESULTS = Path(__file__).parents[1] / ".benchmarks"
LENGTH = 512


def child(tile: str) -> None:
    """A server with one trace in it; prints where it is."""
    import warnings

    warnings.simplefilter("ignore")
    import torch
    import uvicorn
    from transformers import GPT2Config, GPT2LMHeadModel

    import headscope as hs
    from headscope.server.access import Access
    from headscope.server.catalogue import Catalogue
    from headscope.server.messages import RunRequest
    from headscope.server.options import Limits, Options
    from headscope.server.run_server import listening_socket, server_config
    from headscope.server.runs import ServerRun
    from headscope.server.workbench import Workbench

    Catalogue.load_builtin = lambda self: None
    torch.manual_seed(0)
    model = hs.Model(GPT2LMHeadModel(GPT2Config()).eval(), name="gpt2-small")
    trace = model.run(inputs={"input_ids": torch.randint(0, 50257, (1, LENGTH))})
    workbench = Workbench(Options(limits=Limits()), Access())
    workbench.runs.cache.put("trace", ServerRun("trace", RunRequest("gpt2-small"), trace, 0.0), trace.nbytes())
    if tile == "computed":
        workbench.parts.cache.put = lambda *cache_arguments: None
    listener = listening_socket("127.0.0.1", 0)
    print(json.dumps({"port": listener.getsockname()[1], "token": workbench.access.token}), flush=True)
    uvicorn.Server(server_config(workbench)).run([listener])


class Client:
    """One connection."""

    def __init__(self, port: int, token: str):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}"}

    def ask(self, key: str) -> tuple[float, int, int]:
        """Seconds until the last byte, status, size."""
        begun = time.perf_counter()
        self.connection.request("GET", f"/api/traces/trace/{key}", headers=self.headers)
        answer = self.connection.getresponse()
        size = len(answer.read())
        return time.perf_counter() - begun, answer.status, size


def measure_clients(address: dict, n_clients: int, n_requests: int) -> dict:
    """Everybody asks for layers in turn, all at once."""
    gate = threading.Barrier(n_clients)

    def work(number: int) -> list[tuple[float, int, int]]:
        client = Client(**address)
        client.ask("trace")
        gate.wait()
        # One client asks for the promised tile; many ask for all layers in turn, from different places.
        keys = [f"layer/L{5 if n_clients == 1 else (number + turn) % 12}?what=pattern" for turn in range(n_requests)]
        return [client.ask(key) for key in keys]

    begun = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as pool:
        timings = [answer for answers in pool.map(work, range(n_clients)) for answer in answers]
    seconds = sorted(seconds for seconds, _, _ in timings)
    return {
        "clients": n_clients,
        "requests": len(timings),
        "p50": seconds[len(seconds) // 2],
        "p95": seconds[min(len(seconds) - 1, int(len(seconds) * 0.95))],
        "errors": sum(status != 200 for _, status, _ in timings),
        "bytes": max(size for _, _, size in timings),
        "per_second": len(timings) / (time.perf_counter() - begun),
    }


def main() -> None:
    """Measure, print a table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    n_requests = {1: 20, 32: 3, 128: 1} if options.quick else {1: 100, 32: 10, 128: 5}
    rows = []
    print(f"{'tile':<10}{'clients':>8}{'requests':>10}{'p50':>10}{'p95':>10}{'errors':>8}{'size':>10}{'a second':>10}")
    for tile in ("computed", "cached"):
        command = [sys.executable, __file__, "--child", tile]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())
            for n_clients, count in n_requests.items():
                row = {"tile": tile} | measure_clients(address, n_clients, count)
                rows.append(row)
                times = f"{row['p50'] * 1e3:>7.1f} ms{row['p95'] * 1e3:>7.1f} ms"
                print(
                    f"{tile:<10}{n_clients:>8}{row['requests']:>10}{times}"
                    f"{row['errors']:>8}{row['bytes'] / 1e6:>7.1f} MB{row['per_second']:>10.0f}",
                    flush=True,
                )
            server.terminate()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "server.json").write_text(json.dumps({"length": LENGTH, "runs": rows}, indent=1))


if __name__ == "__main__":
    main()
