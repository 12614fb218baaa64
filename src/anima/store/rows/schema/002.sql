-- Whether whoever runs the servers vouches for a home's configuration. One that we made is theirs; a restored stranger's is not.
alter table anima.home add column trusted boolean not null default true;
