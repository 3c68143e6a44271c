/** Programs run from bundles, in a project of their own. */
import { execFile } from 'node:child_process'
import { copyFile, cp, mkdir, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/folders.ts'

const run = promisify(execFile)
const project = fileURLToPath(new URL('../../', import.meta.url))

/** A project with the launcher and some programs. */
async function givenProject(files: Readonly<Record<string, string>>) {
  const root = await temporaryFolder()
  const write = (path: string, text: string) => writeFile(join(root, path), text)
  for (const folder of ['platform', 'cli', 'domain']) await mkdir(join(root, folder))
  for (const file of [
    'package.json',
    'tsconfig.json',
    ...['launch', 'bundle', 'program-bundle'].map((name) => `platform/${name}.mjs`),
  ])
    await copyFile(join(project, file), join(root, file))
  await symlink(join(project, 'node_modules'), join(root, 'node_modules'))
  for (const [path, text] of Object.entries(files)) await write(path, text)
  const launch = (program: string, ...words: string[]) =>
    run(process.execPath, ['platform/launch.mjs', program, ...words], { cwd: root, env: { PATH: '/usr/bin:/bin' } })
  const bundles = async () =>
    (await readdir(join(root, 'dist/programs'))).filter((name) => !name.endsWith('.json')).toSorted()
  return { root, write, launch, bundles }
}

const main = "import { text } from '../domain/text.ts'\nconsole.log(text)\n"

test('a program runs with what its sources contain at its start, never with an earlier bundle', async () => {
  const { root, write, launch, bundles } = await givenProject({
    'cli/main.ts': main,
    'domain/text.ts': "export const text: string = 'one'\n",
  })
  expect((await launch('cli/main.ts')).stdout).toBe('one\n')
  expect((await launch('cli/main.ts')).stdout).toBe('one\n')
  expect(await bundles()).toHaveLength(1)

  // The same length and the same times as before.
  const file = join(root, 'domain/text.ts')
  const { atime, mtime } = await stat(file)
  await write('domain/text.ts', "export const text: string = 'two'\n")
  await utimes(file, atime, mtime)
  expect((await launch('cli/main.ts')).stdout).toBe('two\n')
  expect(await bundles()).toHaveLength(2)

  await write('cli/main.ts', "import { text } from '../domain/other.ts'\nconsole.log(text)\n")
  await expect(launch('cli/main.ts')).rejects.toMatchObject({ stderr: expect.stringContaining('domain/other.ts') })
  await write('domain/other.ts', "export { text } from './text.ts'\n")
  expect((await launch('cli/main.ts')).stdout).toBe('two\n')
  await rm(file)
  await expect(launch('cli/main.ts')).rejects.toMatchObject({ stderr: expect.stringContaining('./text.ts') })
  await write('domain/text.ts', "export const text = 'two'\n")
  await write('tsconfig.json', '{ "compilerOptions": { "jsx": "react-jsx", "jsxImportSource": "none" } }\n')
  expect((await launch('cli/main.ts')).stdout).toBe('two\n')
  expect(await bundles()).toHaveLength(4)
})

test('what a program imports later is built from the same sources', async () => {
  const { write, launch } = await givenProject({
    'cli/main.ts': "const { text } = await import('../domain/text.ts')\nconsole.log(text)\n",
    'domain/text.ts': "export const text = 'one'\n",
  })
  expect((await launch('cli/main.ts')).stdout).toBe('one\n')
  await write('domain/text.ts', "export const text = 'two'\n")
  expect((await launch('cli/main.ts')).stdout).toBe('two\n')
})

test('many processes that start at once after a change all run the changed program', async () => {
  const { write, launch, bundles } = await givenProject({
    'cli/main.ts': main,
    'domain/text.ts': "export const text = 'one'\n",
  })
  for (const text of ['one', 'two']) {
    await write('domain/text.ts', `export const text = '${text}'\n`)
    const ends = await Promise.all(Array.from({ length: 5 }, () => launch('cli/main.ts')))
    expect(ends.map(({ stdout }) => stdout)).toEqual(Array(5).fill(`${text}\n`))
  }
  expect(await bundles()).toHaveLength(2)
})

test('another version of esbuild builds each bundle again', async () => {
  const { root, write, launch, bundles } = await givenProject({ 'cli/main.ts': 'console.log(1)\n' })
  await launch('cli/main.ts')
  await rm(join(root, 'node_modules'))
  await cp(join(project, 'node_modules/esbuild'), join(root, 'node_modules/esbuild'), { recursive: true })
  await symlink(join(project, 'node_modules/@esbuild'), join(root, 'node_modules/@esbuild'))
  await launch('cli/main.ts')
  expect(await bundles()).toHaveLength(1)
  await write('node_modules/esbuild/package.json', '{ "main": "lib/main.js", "version": "0.0.0" }\n')
  await launch('cli/main.ts')
  expect(await bundles()).toHaveLength(2)
})

test('an incomplete list of what a bundle was built from counts as none', async () => {
  const { write, launch } = await givenProject({
    'cli/main.ts': main,
    'domain/text.ts': "export const text = 'one'\n",
  })
  await launch('cli/main.ts')
  await write('dist/programs/cli-main.json', '{"entry":')
  expect((await launch('cli/main.ts')).stdout).toBe('one\n')
})

test('a program has its own arguments, path and stack traces', async () => {
  const { root, launch } = await givenProject({
    'cli/main.ts': `import { fail } from '../domain/text.ts'
interface Unused { readonly text: string }

console.log(JSON.stringify([import.meta.url, ...process.argv.slice(1)]))
fail()
`,
    'domain/text.ts':
      'interface Unused { readonly text: string }\n\nexport function fail(): never {\n  throw new Error()\n}\n',
  })
  const failure = await launch('cli/main.ts', '--one', 'two').catch(
    (error: { stdout: string; stderr: string }) => error,
  )
  expect(JSON.parse(failure.stdout)).toEqual([`file://${root}/cli/main.ts`, `${root}/cli/main.ts`, '--one', 'two'])
  expect(failure.stderr).toContain(`at fail (${root}/domain/text.ts:4:9)`)
  expect(failure.stderr).toContain(`(${root}/cli/main.ts:5:1)`)
})

test('a program of a package below the project imports the dependencies of that package', async () => {
  const { root, write, launch } = await givenProject({ 'domain/text.ts': "export const text = 'of the project'\n" })
  await mkdir(join(root, 'peers', 'node_modules', 'peer'), { recursive: true })
  await write('peers/package.json', '{ "type": "module" }\n')
  await write('peers/node_modules/peer/package.json', '{ "name": "peer", "type": "module", "exports": "./index.js" }\n')
  await write('peers/node_modules/peer/index.js', "export const peer = 'of the peer'\n")
  await write(
    'peers/main.ts',
    "import { peer } from 'peer'\nimport { text } from '../domain/text.ts'\nconsole.log(import.meta.url, peer, text)\n",
  )
  expect((await launch('peers/main.ts')).stdout).toBe(`file://${root}/peers/main.ts of the peer of the project\n`)
})

test('a program outside of the project is refused', async () => {
  const { launch } = await givenProject({})
  await expect(launch('../main.ts')).rejects.toMatchObject({
    stderr: expect.stringContaining('outside of the project'),
  })
})
