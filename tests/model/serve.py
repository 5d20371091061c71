"""Serves one GGUF file as chat completions on 127.0.0.1 by llama.cpp; runs in `.venv-model`, which has nothing of ours.

Prints the address as one line, then serves until standard input ends, so it cannot outlive whoever started it.
"""

from __future__ import annotations

import argparse
import os
import sys

import xllamacpp


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("model")
    options.add_argument("--alias", required=True)
    options.add_argument("--context", type=int, required=True, help="tokens of prompt and reply together")
    options.add_argument("--threads", type=int, required=True)
    given = options.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.model_alias = {given.alias}
    params.n_ctx = given.context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
    params.n_gpu_layers = 0
    params.port = 0
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # An orderly end would first finish the reply that nobody waits for any more.
    os._exit(0)


main()
