/**
 * Runs a program of the project: `node platform/launch.mjs api/server.ts`. Plain JavaScript, like the file that it
 * imports, since Node 20 cannot run TypeScript.
 */
import { resolve } from 'node:path'
import { importProgram } from './program-bundle.mjs'

const [node = '', , program = '', ...words] = process.argv
// The arguments that the program would have if Node ran it itself.
process.argv = [node, resolve(program), ...words]
await importProgram(resolve(program))
