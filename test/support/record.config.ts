/** For `npm run histories`: the servers of the tests, but the files that record histories. */
import { defineConfig, mergeConfig } from 'vitest/config'
import tests from '../../vitest.config.ts'

const { include: _, ...shared } = tests.test ?? {}

export default mergeConfig(defineConfig({ test: shared }), { test: { include: ['test/**/*.record.ts'] } })
