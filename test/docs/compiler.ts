import { join } from 'node:path';

import ts from 'typescript';

import { root, type CodeBlock } from './markdown.js';

/**
 * What the compiler says of the blocks, at the lines of their pages. Each block is a module of its own.
 * @param folder where the blocks are compiled, with its `tsconfig.json`: they import what is there.
 * @param declarations files that declare what they import and nobody installs.
 */
export function problemsOf(
  checked: readonly CodeBlock[],
  folder = root,
  declarations: readonly string[] = [],
): string[] {
  const options: ts.CompilerOptions = {
    ...ts.parseJsonConfigFileContent(
      ts.readConfigFile(join(folder, 'tsconfig.json'), (path) => ts.sys.readFile(path)).config,
      ts.sys,
      folder,
    ).options,
    // The one option of this repository that forbids what is right: `process.env.NAME`.
    noPropertyAccessFromIndexSignature: false,
    experimentalDecorators: true, // for NestJS
    allowImportingTsExtensions: true,
    noEmit: true,
  };
  const files = new Map(
    checked.map((block, index) => [
      join(folder, `block-${index}.ts`),
      { block, text: `${block.code}\nexport {};\n` },
    ]),
  );
  const host = ts.createCompilerHost(options);
  // A fifth of the time, for comments that no diagnostic here is about.
  host.jsDocParsingMode = ts.JSDocParsingMode.ParseNone;
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.readFile = (path) => files.get(path)?.text ?? readFile(path);
  host.getSourceFile = (path, target, ...rest) => {
    const file = files.get(path);
    return file ? ts.createSourceFile(path, file.text, target) : getSourceFile(path, target, ...rest);
  };
  const program = ts.createProgram([...declarations, ...files.keys()], options, host);
  return [...files].flatMap(([path, { block }]) => {
    const source = program.getSourceFile(path);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ start = 0, messageText }) => {
        const line = source?.getLineAndCharacterOfPosition(start).line ?? 0;
        return `${block.page}:${block.line + line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
      },
    );
  });
}
