/** Completion scripts for shells, made of the definitions of the commands, so that they know every flag there is. */
import { Argument, type Command, type Option } from 'commander';

import type { Invocation, Subcommand } from './subcommand.js';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

type Shell = keyof typeof SCRIPTS;

function addCompletionCommand(command: Command): void {
  command
    .description('print a script that completes the commands and flags in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText(
      'after',
      `
Examples:
  source <(resilient-watcher completion bash)     # in ~/.bashrc
  source <(resilient-watcher completion zsh)      # in ~/.zshrc, after compinit
  resilient-watcher completion fish | source      # in ~/.config/fish/config.fish`,
    );
}

async function runCompletion({ paths: [shell], program, session }: Invocation<object>): Promise<void> {
  const script = SCRIPTS[shell as Shell](program.commands);
  await session.output.result(script.trimEnd(), { shell, script });
  session.end(0);
}

/** `completion`: for the terminals of people. */
export const completion: Subcommand = { describe: addCompletionCommand, run: runCompletion };

/** The flags of a command as its help shows them. */
const optionsOf = (command: Command): Option[] => [...command.createHelp().visibleOptions(command)];
const wordsOf = ({ long, short }: Option): string[] => [long, short].flatMap((flag) => flag ?? []);
const takesValue = ({ required, optional }: Option): boolean => required || optional;
const takesFile = ({ flags }: Option): boolean => /<(?:file|path)>/.test(flags);
const choicesOf = (command: Command): readonly string[] =>
  command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
const takesPaths = (command: Command): boolean =>
  command.registeredArguments.length > 0 && choicesOf(command).length === 0;
/** In single quotes, with those inside escaped. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Without a match of its own, bash completes the name of a file. */
function bashScript(commands: readonly Command[]): string {
  const values = commands.flatMap((command) =>
    optionsOf(command).flatMap((option) =>
      option.argChoices
        ? wordsOf(option).map(
            (word) => `    '${command.name()} ${word}') words='${option.argChoices?.join(' ')}' ;;`,
          )
        : takesValue(option)
          ? wordsOf(option).map((word) => `    '${command.name()} ${word}') return ;;`)
          : [],
    ),
  );
  const flags = commands.map(
    (command) => `        ${command.name()}) words='${optionsOf(command).flatMap(wordsOf).join(' ')}' ;;`,
  );
  const others = commands
    .filter((command) => choicesOf(command).length > 0)
    .map((command) => `        ${command.name()}) words='${choicesOf(command).join(' ')}' ;;`);
  return `# resilient-watcher completion bash
_resilient_watcher() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]} words='' i
  COMPREPLY=()
  # Bash splits --flag=value at the sign.
  if [[ $current == '=' ]]; then current=''; elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    [[ \${COMP_WORDS[i]} == '--' ]] || continue
    ((i == COMP_CWORD - 1)) && COMPREPLY=($(compgen -c -- "$current"))
    return
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${commands.map((command) => command.name()).join(' ')} --help --version' -- "$current"))
    return
  fi
  case "$command $previous" in
${values.join('\n')}
    *)
      if [[ $current == -* ]]; then
        case $command in
${flags.join('\n')}
        esac
      else
        case $command in
${others.join('\n')}
        esac
      fi
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _resilient_watcher resilient-watcher
`;
}

function zshScript(commands: readonly Command[]): string {
  const plain = (text: string): string => text.replace(/[\\[\]:]/g, '\\$&').replaceAll("'", "'\\''");
  const names = commands.map((command) => `    '${command.name()}:${plain(command.description())}'`);
  const cases = commands.map((command) => {
    const specs = optionsOf(command).flatMap((option) =>
      wordsOf(option).map((word) => {
        const action = option.argChoices
          ? `(${option.argChoices.join(' ')})`
          : takesFile(option)
            ? '_files'
            : '';
        const value = takesValue(option) ? `:${plain(option.attributeName())}:${action}` : '';
        const isLong = word.startsWith('--');
        return `'*${word}${value !== '' && isLong ? '=' : ''}[${plain(option.description)}]${value}'`;
      }),
    );
    const choices = choicesOf(command);
    if (choices.length > 0) specs.push(`'1:argument:(${choices.join(' ')})'`);
    if (takesPaths(command)) specs.push(`'*:path:_files'`);
    return `    ${command.name()}) _arguments ${specs.join(' ')} ;;`;
  });
  return `#compdef resilient-watcher
_resilient_watcher() {
  local -a commands
  commands=(
${names.join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  # Another command, with its own completion.
  local end=\${words[(i)--]}
  if ((end < CURRENT)); then
    shift $end words
    ((CURRENT -= end))
    _normal
    return
  fi
  shift words
  ((CURRENT -= 1))
  case $words[1] in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _resilient_watcher ]]; then _resilient_watcher "$@"; else compdef _resilient_watcher resilient-watcher; fi
`;
}

function fishScript(commands: readonly Command[]): string {
  const add = 'complete -c resilient-watcher';
  const lines = commands.flatMap((command) => {
    const here = `-n '__fish_seen_subcommand_from ${command.name()}'`;
    const flags = optionsOf(command).map((option) => {
      const names = [
        option.long && `-l ${option.long.slice(2)}`,
        option.short && `-s ${option.short.slice(1)}`,
      ];
      const value = option.argChoices
        ? `-x -a ${quoted(option.argChoices.join(' '))}`
        : takesFile(option)
          ? '-r -F'
          : takesValue(option)
            ? '-x'
            : '';
      return [add, here, ...names, value, `-d ${quoted(option.description)}`].filter(Boolean).join(' ');
    });
    const choices = choicesOf(command);
    const argument = choices.length > 0 ? [`${add} ${here} -f -a ${quoted(choices.join(' '))}`] : [];
    const files = takesPaths(command) ? [`${add} ${here} -F`] : [];
    return [
      `${add} -n __fish_use_subcommand -a ${command.name()} -d ${quoted(command.description())}`,
      ...argument,
      ...files,
      ...flags,
    ];
  });
  return [
    '# resilient-watcher completion fish',
    `${add} -f`,
    `${add} -n __fish_use_subcommand -l help -d 'display help'`,
    `${add} -n __fish_use_subcommand -l version -d 'display the version'`,
    ...lines,
    '',
  ].join('\n');
}
