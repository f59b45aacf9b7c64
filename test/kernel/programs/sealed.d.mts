export declare function seal(number: number): string;
export declare function isSealed(text: string): boolean;
