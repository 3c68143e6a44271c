/** How a relay runs other programs. Each addition is left out where the system has no program for it. */
import { delimiter } from 'node:path'
import { findProgram } from '../platform/find-program.ts'

/** A program and its arguments. */
export type Command = readonly [path: string, ...args: string[]]

function runBy(name: string, args: readonly string[], command: Command, searchPath: string): Command {
  const path = findProgram(name, searchPath.split(delimiter))
  return path === undefined ? command : [path, ...args, ...command]
}

/** The kernel ends the program with its relay, also with one that is killed. Only Linux has it. */
export const endedWithRelay = (command: Command, searchPath: string): Command =>
  process.platform === 'linux' ? runBy('setpriv', ['--pdeathsig', 'KILL', '--'], command, searchPath) : command

/** The program writes at once: its C library holds back 4 KiB of what it writes to a pipe. */
export const unbuffered = (command: Command, searchPath: string): Command =>
  runBy('stdbuf', ['-o0'], command, searchPath)

/** The program gets the time that the streams leave, and is the first that the kernel ends where memory is short. */
export const atLowPriority = (command: Command, searchPath: string): Command =>
  runBy('choom', ['-n', '1000', '--'], runBy('nice', ['-n', '19'], command, searchPath), searchPath)
