#!/usr/bin/env node
/**
 * Runs in a pod: the application of `deploy/kubernetes/run-as-pid-1.yaml`. Reads its configuration and its certificate when
 * it starts, and prints them as a line of JSON; the contents are those of the test.
 */
import { readFileSync } from 'node:fs';

const config = readFileSync('/etc/app/revision', 'utf8');
const certificate = readFileSync('/etc/tls/tls.crt', 'utf8');
console.log(JSON.stringify({ event: 'started', config, certificate }));
setInterval(() => undefined, 60_000);
