import { existsSync } from 'node:fs';

import tseslint from 'typescript-eslint';

/** They have packages of their own, without which nothing can be said of their types. */
const notInstalled = ['examples/recipes', 'site', 'test/package'].filter(
  (folder) => !existsSync(`${folder}/node_modules`),
);

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      'coverage/**',
      '**/node_modules/**',
      ...notInstalled.map((folder) => `${folder}/**`),
    ],
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
      // An empty catch or callback is written with its reason beside it.
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
    },
  },
  {
    files: ['{src,packages/*/src}/**/*.ts'],
    // It depends on nothing, the seam of time included.
    ignores: ['packages/conformance/**'],
    rules: {
      'no-console': 'error',
      'no-restricted-globals': ['error', 'setTimeout', 'setInterval', 'Date', 'performance'],
    },
  },
  // Stages of tests are taken apart by destructuring; their members use no `this`.
  // The client of Kubernetes declares its models as classes, and takes plain objects.
  {
    files: ['{test,examples,packages}/**/*.ts', 'src/kubernetes/**/*.ts'],
    rules: { '@typescript-eslint/no-unsafe-class-instance-assignment': 'off' },
  },
  { files: ['{test,site,packages/*/test}/**/*.ts'], rules: { '@typescript-eslint/unbound-method': 'off' } },
  {
    files: ['src/core/ports/clock.ts', 'src/core/ports/random.ts'],
    rules: { 'no-restricted-globals': 'off' },
  },
);
