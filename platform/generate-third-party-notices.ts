/** Part of `npm run generate`: writes `THIRD_PARTY_NOTICES.md`. */
import { writeFile } from 'node:fs/promises'
import { thirdPartyNotices } from './third-party-notices.ts'

await writeFile(new URL('../THIRD_PARTY_NOTICES.md', import.meta.url), await thirdPartyNotices())
