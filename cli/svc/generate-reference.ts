/** Writes the reference into docs/cli.md, as a step of `npm run generate`. */
import { readFile, writeFile } from 'node:fs/promises'
import { createProgram } from './program.ts'
import { formatReference } from './reference.ts'

const page = new URL('../../docs/cli.md', import.meta.url)
const [introduction = ''] = (await readFile(page, 'utf8')).split('## Exit codes\n', 1)
await writeFile(page, `${introduction}${formatReference(createProgram())}`)
