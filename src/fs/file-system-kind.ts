import { call, type Effects } from './effects.js';

/** What is known of a file system by its `statfs` magic number (`statfs(2)`). The numbers mean this on Linux only. */
export interface FileSystemKind {
  readonly name: string;
  /**
   * `memory`: every call is answered at once. `disk`: lookups mostly are. `read-only`: likewise, and it never
   * changes or is made up by the kernel. `remote`: a call may never be answered, and changes give no native event.
   */
  readonly place: 'memory' | 'disk' | 'read-only' | 'remote';
}

const KINDS: ReadonlyMap<number, FileSystemKind> = new Map(
  (
    [
      [0x01021994, 'tmpfs', 'memory'], // Secrets, projected volumes, emptyDir with medium Memory
      [0x858458f6, 'ramfs', 'memory'],
      [0xef53, 'ext', 'disk'],
      [0x58465342, 'xfs', 'disk'],
      [0x9123683e, 'btrfs', 'disk'],
      [0x794c7630, 'overlayfs', 'disk'], // a container's root
      [0xf2f52010, 'f2fs', 'disk'],
      [0x2fc12fc1, 'zfs', 'disk'],
      [0xca451a4e, 'bcachefs', 'disk'],
      [0x73717368, 'squashfs', 'read-only'],
      [0xe0f5e1e2, 'erofs', 'read-only'],
      [0x9fa0, 'proc', 'read-only'],
      [0x62656572, 'sysfs', 'read-only'],
      [0x6969, 'NFS', 'remote'],
      [0xff534d42, 'CIFS', 'remote'],
      [0x517b, 'SMB', 'remote'],
      [0xfe534d42, 'SMB2', 'remote'],
      [0x65735546, 'FUSE', 'remote'], // virtio-fs too
      [0x01021997, '9p', 'remote'],
      [0x00c36400, 'Ceph', 'remote'],
      [0x5346414f, 'AFS', 'remote'],
      [0x0bd00bd0, 'Lustre', 'remote'],
    ] as const
  ).map(([magic, name, place]) => [magic, { name, place }]),
);

/**
 * The kind of file system a path is on. Only what is known to be local may be called synchronously, so this call must
 * not be.
 */
export function* kindAt(path: string, platform: NodeJS.Platform): Effects<FileSystemKind | undefined> {
  return fileSystemKind((yield* call('statfs', path)).type, platform);
}

/** The kind of file system that `statfs` gave this type; undefined when it is not known, or not on Linux. */
export function fileSystemKind(type: number, platform: NodeJS.Platform): FileSystemKind | undefined {
  // Some architectures sign-extend the number.
  return platform === 'linux' ? KINDS.get(type >>> 0) : undefined;
}
