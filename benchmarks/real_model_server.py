"""Serves a model's weights on loopback: `python real_model_server.py WEIGHTS PORT THREADS`, until SIGTERM.

Runs in the environment that real_model.py makes, not in the project's. llama.cpp writes its log to standard error.
"""

from __future__ import annotations

import os
import signal
import sys

import xllamacpp


def main(weights: str, port: int, threads: int) -> None:
    """One request at a time; prompt and reply have 2,048 tokens together."""
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)  # before the server's threads begin: they inherit it
    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.model_alias = {os.path.basename(weights)}
    parameters.hostnames, parameters.port = ["127.0.0.1"], port
    parameters.n_ctx, parameters.n_parallel = 2048, 1
    # On busy processors one thread writes faster than two that wait for each other at every token.
    parameters.cpuparams.n_threads, parameters.cpuparams_batch.n_threads = 1, threads
    parameters.sampling.penalty_repeat = 1.1  # else a model this small repeats one word until no room is left
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    signal.sigwait(stop)
    os._exit(0)  # the server's own end would wait for the reply under way


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
