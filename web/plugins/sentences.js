/**
 * The catalogues of messages without what only the command line says: a third of their bytes.
 *
 * @returns {import('vite').Plugin}
 */
export function sentences() {
  return {
    name: 'trackbed-sentences',
    enforce: 'pre',
    transform(code, id) {
      if (!/\/base\/messages\/\w+\/[\w-]+\.json$/.test(id.split('?')[0])) return null
      const all = Object.entries(JSON.parse(code))
      return { code: JSON.stringify(Object.fromEntries(all.filter(([key]) => !key.startsWith('cli.')))), map: null }
    },
  }
}
