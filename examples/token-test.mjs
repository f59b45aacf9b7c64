// How to test code that depends on a token: with a clock that passes days at once, and a scripted API server.
// Run: node examples/token-test.mjs
import assert from 'node:assert/strict';

import { TokenRefresher } from 'resilient-watcher';
import { FakeClock, FakeTokenClient } from 'resilient-watcher/testing';

const clock = new FakeClock();
const client = new FakeTokenClient({ clock });
const refresher = new TokenRefresher({ client, clock, tokenFile: false });
await refresher.start();

// For half an hour the server answers 429: the token is kept.
client.otherwise = { error: FakeTokenClient.tooManyRequests(60_000) };
void refresher.refresh();
await clock.advance(30 * 60_000);
assert.equal(refresher.status().healthy, false);
assert.ok(client.accepts((await refresher.get()).value));

// The server answers again.
client.otherwise = {};
await clock.advance(5 * 60_000);
assert.equal(refresher.status().healthy, true);

// The clock of the server differs.
client.skewMs = 3_600_000;
refresher.once('skew', ({ aheadMs }) => console.log(`the server's clock is ${aheadMs / 1000} s ahead`));
void refresher.refresh();
await clock.advance(10_000);

await refresher.close();
assert.equal(clock.pending, 0);
console.log(`${client.requests.length} requests, never more than ${client.mostInFlight} at once`);
