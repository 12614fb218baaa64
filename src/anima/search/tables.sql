-- What the index says to a SQLite file (tables.py), each text beneath its name.

-- schema
create table made(epoch text not null, made_for text not null, generation integer not null);
create table document(
    id integer primary key autoincrement, path text not null unique, digest text not null, kind text not null,
    layer text not null, day integer not null);
create table part(
    id integer primary key autoincrement, document integer not null, sum integer not null, packed blob not null,
    vectors blob not null, said_sum integer not null, said text not null);
create index part_document on part(document);
-- Numbers of parts begin anywhere, so that who looked into a file that was begun again takes no part of the new one for theirs.
insert into sqlite_sequence values('part', abs(random()) % 274877906944);
insert into made values(hex(randomblob(8)), :made_for, 0)

-- known
select path, digest from document order by path

-- new_documents
select id, path, kind, layer, day from document where id > ? order by id

-- new_parts
select id, document, packed, vectors, sum from part where id > ? order by id

-- shown
select part.id, document.digest, part.said, part.said_sum from json_each(?) as asked
cross join part on part.id = asked.value cross join document on document.id = part.document

-- parts_of
select id from part where document = (select id from document where path = ?) order by id

-- put_document
insert into document(path, kind, layer, day, digest) values(?, ?, ?, ?, ?)

-- put_part
insert into part(document, sum, packed, vectors, said_sum, said) values(?, ?, ?, ?, ?, ?)

-- next
update made set generation = generation + 1
