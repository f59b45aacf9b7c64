export function certificates(): string;
