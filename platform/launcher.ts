/** How Node runs a program of the project: from its bundle, which `launch.mjs` builds if the sources have changed. */
import { fileURLToPath } from 'node:url'

const projectFile = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

/** The arguments of Node for a program. @param file below the project's folder. */
export const nodeArguments = (file: string): string[] => [projectFile('platform/launch.mjs'), projectFile(file)]
