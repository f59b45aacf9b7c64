// How to test what depends on a token: days pass in a moment, and the API server does what the test says.
// Run: node examples/token-test.mjs
import assert from 'node:assert/strict';

import { TokenRefresher } from 'resilient-watcher';
import { FakeClock, FakeTokenClient } from 'resilient-watcher/testing';

const clock = new FakeClock();
const client = new FakeTokenClient({ clock });
const refresher = new TokenRefresher({ client, clock, tokenFile: false });
await refresher.start();

// Half an hour in which the server asks to be left alone: the token is kept.
client.otherwise = { error: FakeTokenClient.tooManyRequests(60_000) };
void refresher.refresh();
await clock.advance(30 * 60_000);
assert.equal(refresher.status().healthy, false);
assert.ok(client.accepts((await refresher.get()).value));

// The server is back.
client.otherwise = {};
await clock.advance(5 * 60_000);
assert.equal(refresher.status().healthy, true);

// A server that uses another clock.
client.skewMs = 3_600_000;
refresher.once('skew', ({ aheadMs }) => console.log(`the server's clock is ${aheadMs / 1000} s ahead`));
void refresher.refresh();
await clock.advance(10_000);

await refresher.close();
assert.equal(clock.pending, 0);
console.log(`${client.requests.length} requests, never more than ${client.mostInFlight} at once`);
