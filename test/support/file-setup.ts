/** Runs before each test file, since the files of a process share their modules: a module's own `afterAll` runs once. */
import { afterAll } from 'vitest'
import { runAtEnd } from './at-end.ts'

afterAll(runAtEnd, 60_000)
