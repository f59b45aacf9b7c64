export declare function randomOf(seed: number): () => number;
