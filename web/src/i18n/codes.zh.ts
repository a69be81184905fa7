/** 服务器句子的中文:与命令行读取同一批文件。 */
export default import.meta.glob<Record<string, string>>('@messages/zh/*.json', { eager: true, import: 'default' })
