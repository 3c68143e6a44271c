/** A project that has installed the tarball of the API's client, as authors of plugins do. */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const project = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

export interface Output {
  readonly stdout: string
  readonly stderr: string
}

/** Rejects with the output unless the exit code is 0. */
async function runIn(folder: string, program: string, words: readonly string[]): Promise<Output> {
  return run(program, words, { cwd: folder }).catch((error: Output & Error) => {
    throw new Error(`${program} ${words.join(' ')}: ${error.message}\n${error.stdout}${error.stderr}`)
  })
}

/** Builds and packs the client. @returns the path of the tarball, in this folder, and the files that it contains. */
export async function packClient(folder: string): Promise<{ tarball: string; files: string[] }> {
  const { stdout } = await runIn(project, 'npm', ['pack', './client', '--pack-destination', folder, '--json'])
  // The output of the build comes before, and npm 12 lists packages by name.
  const parsed: unknown = JSON.parse(stdout.slice(stdout.search(/^[[{]/m)))
  const [packed] = Object.values(parsed as Record<string, { filename: string; files: { path: string }[] }>)
  if (!packed) throw new Error(`npm pack printed no package: ${stdout}`)
  return { tarball: join(folder, packed.filename), files: packed.files.map(({ path }) => path) }
}

export interface ClientProject {
  readonly folder: string
  /** Writes a module, such as `main.ts`. */
  write(name: string, text: string): Promise<void>
  /** Checks the types of all modules, and compiles them to `build/`. Rejects with the errors. */
  compile(): Promise<void>
}

/** Makes a project in this empty folder, whose TypeScript settings are strict, and installs the client offline. */
export async function makeClientProject(folder: string): Promise<ClientProject> {
  const { tarball } = await packClient(folder)
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2023', 'dom'],
    module: 'nodenext',
    types: ['node'],
    typeRoots: [join(project, 'node_modules/@types')],
    strict: true,
    noUncheckedIndexedAccess: true,
    // The declarations of the package are checked too.
    skipLibCheck: false,
    rootDir: 'src',
    outDir: 'build',
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
  await runIn(folder, 'npm', ['install', '--offline', '--no-audit', '--no-fund', tarball])
  await mkdir(join(folder, 'src'))
  return {
    folder,
    write: (name, text) => writeFile(join(folder, 'src', name), text),
    compile: async () => void (await runIn(folder, join(project, 'node_modules/.bin/tsc'), ['--project', '.'])),
  }
}
