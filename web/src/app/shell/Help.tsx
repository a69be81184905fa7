import { Modal } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import type { Key } from '@/i18n'
import { Kbd } from '@/ui/Small'

const KEYS: [string[], Key][] = [
  [['Ctrl', 'K'], 'key_search'],
  [['/'], 'key_filter'],
  [['j'], 'key_down'],
  [['k'], 'key_up'],
  [['Enter'], 'key_open'],
  [['x'], 'key_select'],
  [['Esc'], 'key_clear'],
  [['g', 'r'], 'key_runs'],
  [['g', 'q'], 'key_pool'],
  [['g', 'm'], 'key_models'],
  [['g', 'd'], 'key_datasets'],
  [['?'], 'key_help'],
]

export function Help({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Modal opened={opened} onClose={onClose} title={t('shortcuts')} closeButtonProps={{ 'aria-label': t('close') }}>
      <table style={{ width: '100%', fontSize: 13 }}>
        <tbody>
          {KEYS.map(([keys, label]) => (
            <tr key={label}>
              <td style={{ width: 110, padding: '4px 0' }}>
                {keys.map((key) => (
                  <span key={key} style={{ marginRight: 4 }}>
                    <Kbd>{key}</Kbd>
                  </span>
                ))}
              </td>
              <td>{t(label)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Modal>
  )
}
