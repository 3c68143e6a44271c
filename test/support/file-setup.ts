/**
 * Runs before each test file, since the files of a process share their modules: a module's own `afterAll` runs once.
 */
import { afterAll } from 'vitest'
import { measureFile } from '../suites/file-cost.ts'
import { runAtEnd } from './at-end.ts'

const recordCost = measureFile()
// In reverse order: the cost includes the end of everything that the file has opened.
afterAll(recordCost)
afterAll(runAtEnd, 60_000)
