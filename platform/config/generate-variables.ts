/** Part of `npm run generate`: writes the variables into `.env.example`, docker-compose.yml and docs/operating.md. */
import { readFile, writeFile } from 'node:fs/promises'
import { variableDocuments } from './variable-documents.ts'

for (const { path, render } of variableDocuments) {
  const file = new URL(`../../${path}`, import.meta.url)
  await writeFile(file, render(await readFile(file, 'utf8')))
}
