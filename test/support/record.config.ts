/** For `npm run histories`: the same servers, another kind of file. */
import { defineConfig, mergeConfig } from 'vitest/config'
import tests from '../../vitest.config.ts'

const { include: _, ...shared } = tests.test ?? {}

export default mergeConfig(defineConfig({ test: shared }), { test: { include: ['test/**/*.record.ts'] } })
