export const unitsOnWindows: string[];
