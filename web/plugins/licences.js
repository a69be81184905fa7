import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Licences of all packages whose code is in the page, as /licences.txt: their texts ask to travel along. */
export function licences() {
  return {
    name: 'trackbed-licences',
    generateBundle(_, bundle) {
      const homes = new Set()
      for (const chunk of Object.values(bundle))
        for (const id of chunk.moduleIds ?? []) {
          const found = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)
          if (found) homes.add(found[1])
        }
      const parts = [...homes].sort().map((home) => {
        const { name, version, license } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
        const file = readdirSync(home).find((one) => /^licen[cs]e/i.test(one))
        return `${name} ${version} (${license})\n\n${file ? readFileSync(join(home, file), 'utf8').trim() : ''}\n`
      })
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: parts.join(`\n${'-'.repeat(80)}\n\n`) })
    },
  }
}
