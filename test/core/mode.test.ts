import { expect, test } from 'vitest';

import { isMode } from '../../src/core/options/mode.js';

test('usual modes are accepted, whatever digits their values have in decimal', () => {
  for (const mode of [0, 0o7, 0o400, 0o440, 0o444, 0o500, 0o544, 0o550, 0o555, 0o600, 0o640, 0o644, 0o660]) {
    expect(isMode(mode), mode.toString(8)).toBe(true);
  }
  for (const mode of [0o664, 0o666, 0o700, 0o711, 0o750, 0o755, 0o770, 0o775, 0o777, 0o1777, 0o4751]) {
    expect(isMode(mode), mode.toString(8)).toBe(true);
  }
});

test('octal digits that were written as a decimal number are refused, usual or not', () => {
  for (const digits of ['44', '400', '440', '444', '500', '544', '550', '555', '600', '640', '644', '700']) {
    expect(isMode(Number(digits)), digits).toBe(false);
  }
  for (const digits of ['711', '744', '751', '755', '770', '776', '777', '1755', '1777', '2755']) {
    expect(isMode(Number(digits)), digits).toBe(false);
  }
});

test.each([[-1], [0o10000], [1.5], ['0644'], [null]])('%j is no mode', (value) => {
  expect(isMode(value)).toBe(false);
});
