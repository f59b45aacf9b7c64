/** The smallest of the numbers that at least the share `q` of them does not exceed; Infinity without numbers. */
export function quantile(numbers, q) {
  const ascending = [...numbers].sort((one, other) => one - other);
  return ascending[Math.ceil(q * ascending.length) - 1] ?? Infinity;
}

export function median(numbers) {
  return quantile(numbers, 0.5);
}
