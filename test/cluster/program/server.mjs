#!/usr/bin/env node
/**
 * Runs in a pod: the application of `deploy/kubernetes/run-as-pid-1.yaml`. Reads its configuration when it starts, and its
 * certificate also at SIGHUP. Prints a line of JSON each time; the contents are those of the test.
 */
import { readFileSync } from 'node:fs';

const config = readFileSync('/etc/app/revision', 'utf8');

function load(event) {
  const certificate = readFileSync('/etc/tls/tls.crt', 'utf8');
  console.log(JSON.stringify({ event, pid: process.pid, config, certificate }));
}

process.on('SIGHUP', () => load('reloaded'));
load('started');
setInterval(() => undefined, 60_000);
