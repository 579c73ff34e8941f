create table operations (
  id integer primary key,
  cluster text not null,
  commit_id text,
  actor text,
  action text not null,
  verb text not null,
  kind text not null,
  name text not null,
  node text,
  vmid integer,
  guest_type text,
  started text not null,
  finished text,
  result text,
  error text
) strict;
create index operations_open on operations (cluster) where finished is null;
create index operations_guest on operations (cluster, vmid);

create table steps (
  operation integer not null references operations (id) on delete cascade,
  seq integer not null,
  step text not null,
  state text not null,
  upid text,
  error text,
  changed text not null,
  primary key (operation, seq)
) strict, without rowid;

-- what a guest is still owed, whatever became of the operation that began it
create table owed (
  cluster text not null,
  vmid integer not null,
  kind text not null,
  name text not null,
  node text not null,
  guest_type text not null,
  clone_of_kind text,
  clone_of_name text,
  seed integer not null,
  -- slots of disks that were to grow once they were made, divided by blanks
  grow text not null default '',
  -- its making was begun and did not end well
  making integer not null default 0,
  since text not null,
  primary key (cluster, vmid)
) strict, without rowid;
