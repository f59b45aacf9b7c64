/** The known types of file systems, and how calls behave on them. */
export interface FileSystemKind {
  readonly name: string;
  /**
   * `memory`: every call returns at once. `disk`: lookups return at once, but a change may wait for the device.
   * `read-only`: like `disk`, but nothing can be written. `remote`: a call may never return, and changes cause no events.
   * `unknown`: a call may never return.
   */
  readonly place: 'memory' | 'disk' | 'read-only' | 'remote' | 'unknown';
}

/** A kind: the number that `statfs(2)` reports, and the types in the mount table if they differ from the name. */
type Row = readonly [
  magic: number,
  name: string,
  place: Exclude<FileSystemKind['place'], 'unknown'>,
  types?: readonly string[],
];

/** The kinds known on Linux. */
const KINDS: readonly Row[] = [
  // Secrets, projected volumes, emptyDir with medium Memory
  [0x01021994, 'tmpfs', 'memory', ['tmpfs', 'devtmpfs']],
  [0x858458f6, 'ramfs', 'memory'],
  [0xef53, 'ext', 'disk', ['ext2', 'ext3', 'ext4']],
  [0x58465342, 'xfs', 'disk'],
  [0x9123683e, 'btrfs', 'disk'],
  // The root of a container
  [0x794c7630, 'overlayfs', 'disk', ['overlay']],
  [0xf2f52010, 'f2fs', 'disk'],
  [0x2fc12fc1, 'zfs', 'disk'],
  [0xca451a4e, 'bcachefs', 'disk'],
  [0x73717368, 'squashfs', 'read-only'],
  [0xe0f5e1e2, 'erofs', 'read-only'],
  [0x9fa0, 'proc', 'read-only'],
  [0x62656572, 'sysfs', 'read-only'],
  [0x27e0eb, 'cgroup', 'read-only'],
  [0x63677270, 'cgroup2', 'read-only'],
  [0x1cd1, 'devpts', 'read-only'],
  [0x19800202, 'mqueue', 'read-only'],
  [0x958458f6, 'hugetlbfs', 'read-only'],
  [0x73636673, 'securityfs', 'read-only'],
  [0xf97cff8c, 'selinuxfs', 'read-only'],
  [0x64626720, 'debugfs', 'read-only'],
  [0x74726163, 'tracefs', 'read-only'],
  [0x62656570, 'configfs', 'read-only'],
  [0x6165676c, 'pstore', 'read-only'],
  [0xcafe4a11, 'bpf', 'read-only'],
  [0x65735543, 'fusectl', 'read-only'],
  [0x42494e4d, 'binfmt_misc', 'read-only'],
  [0xde5e81e4, 'efivarfs', 'read-only'],
  [0x6e736673, 'nsfs', 'read-only'],
  [0x67596969, 'rpc_pipefs', 'read-only'],
  [0x6969, 'NFS', 'remote', ['nfs', 'nfs4']],
  [0xff534d42, 'CIFS', 'remote', ['cifs']],
  [0x517b, 'SMB', 'remote', ['smbfs']],
  [0xfe534d42, 'SMB2', 'remote', ['smb3']],
  [0x65735546, 'FUSE', 'remote', ['fuse', 'fuseblk', 'virtiofs']],
  [0x01021997, '9p', 'remote'],
  [0x00c36400, 'Ceph', 'remote', ['ceph']],
  [0x5346414f, 'AFS', 'remote', ['afs']],
  [0x0bd00bd0, 'Lustre', 'remote', ['lustre']],
];

const BY_MAGIC = new Map(
  KINDS.map(([magic, name, place]): [number, FileSystemKind] => [magic, { name, place }]),
);

const BY_TYPE = new Map(
  KINDS.flatMap(([, name, place, types = [name]]) =>
    types.map((type): [string, FileSystemKind] => [type, { name, place }]),
  ),
);

/** The kind with this type in the mount table, such as `ext4` or `fuse.sshfs`. */
export function kindOfType(type: string): FileSystemKind {
  return BY_TYPE.get(type.split('.', 1)[0] ?? type) ?? { name: type, place: 'unknown' };
}

/** The kind with this `statfs` type. */
export function kindOfMagic(type: number): FileSystemKind {
  // Some architectures sign-extend the number.
  return BY_MAGIC.get(type >>> 0) ?? { name: `0x${(type >>> 0).toString(16)}`, place: 'unknown' };
}
