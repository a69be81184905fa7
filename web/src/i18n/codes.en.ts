/** The server's sentences in English: the same files that the CLI reads. */
export default import.meta.glob<Record<string, string>>('@messages/en/*.json', { eager: true, import: 'default' })
