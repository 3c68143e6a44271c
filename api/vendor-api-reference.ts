/**
 * `npm run vendor -- <version>`: puts the bundle of Scalar's API reference into `api/vendor/`, compressed as it is
 * served. As a dependency the package would install 260 others, of which the bundle needs none.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompressSync, constants } from 'node:zlib'

const run = promisify(execFile)
const [version] = process.argv.slice(2)
if (!version || !/^\d+\.\d+\.\d+$/.test(version)) throw new Error('usage: npm run vendor -- <version>, such as 1.72.1')

const folder = await mkdtemp(join(tmpdir(), 'api-reference-'))
// npm compares the archive with the checksum of the registry.
const { stdout } = await run('npm', ['pack', '--silent', `@scalar/api-reference@${version}`], { cwd: folder })
await run('tar', ['xzf', stdout.trim(), 'package/dist/browser/standalone.js'], { cwd: folder })
const bundle = await readFile(join(folder, 'package/dist/browser/standalone.js'))
const params = {
  [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
  [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  [constants.BROTLI_PARAM_SIZE_HINT]: bundle.length,
}
const target = new URL('./vendor/', import.meta.url)
await writeFile(new URL('scalar-api-reference.js.br', target), brotliCompressSync(bundle, { params }))
const sha256 = createHash('sha256').update(bundle).digest('hex')
await writeFile(
  new URL('scalar-api-reference.json', target),
  `${JSON.stringify({ package: '@scalar/api-reference', version, file: 'dist/browser/standalone.js', sha256 }, null, 2)}\n`,
)
