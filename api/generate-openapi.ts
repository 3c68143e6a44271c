/** Part of `npm run generate`: writes `docs/openapi.json`, as a service on this machine would serve it. */
import { writeFile } from 'node:fs/promises'
import { openapiDocument } from './openapi/document.ts'
import { routes } from './routes.ts'

const document = openapiDocument(routes, 'http://localhost:8080')
await writeFile(new URL('../docs/openapi.json', import.meta.url), `${JSON.stringify(document, null, 2)}\n`)
