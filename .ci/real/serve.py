"""Serves a small model with llama.cpp's own server: serve.py WEIGHTS TEMPLATE CONTEXT PORT [SEED TEMPERATURE]; says "ready"
and serves until it is ended. Without a temperature it takes the most likely word each time: the same answers in every run. The
template shows the model how a tool is called: it is too small to follow a description."""

import sys
import time

import xllamacpp

weights, template, context, port, *rest = sys.argv[1:]
seed, temperature = rest or ("1", "0")
params = xllamacpp.CommonParams()
params.model.path = weights
params.hostnames = ["127.0.0.1"]
params.port = int(port)
params.n_ctx = int(context)
params.n_parallel = 1
params.use_jinja = True
params.warmup = False
params.sampling.temp = float(temperature)
params.sampling.seed = int(seed)
params.cpuparams.n_threads = 2
params.cpuparams_batch.n_threads = 2
with open(template, encoding="utf-8") as file:
    params.chat_template = file.read()
server = xllamacpp.Server(params)
print("ready", flush=True)
time.sleep(3600)
